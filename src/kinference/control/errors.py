"""What the control plane refuses, beside `InvalidArgument`; `control/convert.py` translates it to gRPC status and
`dashboard/control.py` to HTTP.
"""

from kinference.errors import KinferenceError


class Unmet(KinferenceError):
    """Something that the call builds on is not there, or did not answer as it must."""


class Missing(KinferenceError):
    """Nothing has this name."""


class Taken(KinferenceError):
    """Something else has this name already."""


class Overtaken(KinferenceError):
    """Another writer was first: the version that the caller meant to replace is no longer the stored one."""


class Referred(KinferenceError):
    """The store's own refusal: a row would refer to a row that is not there."""


class StoreFailed(KinferenceError):
    """The store cannot be read or written, or what it holds cannot be understood."""
