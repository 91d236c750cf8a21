"""What holds for every test."""

from hypothesis import HealthCheck, settings

# How long a machine takes says nothing about the code: no deadline, and slow drawing of examples is no failure.
settings.register_profile(
    "untimed",
    settings.get_profile(settings.get_current_profile_name()),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("untimed")
