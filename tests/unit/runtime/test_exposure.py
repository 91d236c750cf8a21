import pytest

from kinference.config.schema import Access, AccessToken, ClientKey, Config, Gateway, Listen, Tls, Unauthenticated
from kinference.config.values import HostPort, Name, Secret
from kinference.errors import ConfigError
from kinference.runtime.exposure import refuse_exposure
from kinference.vocabulary import Role

EVERYWHERE = HostPort("0.0.0.0", 8080)
KEYS = Gateway(keys=(ClientKey(Secret("${K}", "secret-value"), "acme"),))


def test_loopback_needs_no_credential() -> None:
    refuse_exposure(Config(), insecure=False)
    refuse_exposure(Config(listen=Listen(gateway=HostPort("::1", 0))), insecure=False)


def test_a_gateway_off_loopback_needs_keys() -> None:
    with pytest.raises(ConfigError, match=r"listen\.gateway: 0\.0\.0\.0:8080 .* gateway\.keys"):
        refuse_exposure(Config(listen=Listen(gateway=EVERYWHERE)), insecure=False)
    refuse_exposure(Config(listen=Listen(gateway=EVERYWHERE), gateway=KEYS), insecure=False)


def test_keys_that_nobody_has_to_show_do_not_count() -> None:
    gateway = Gateway(keys=KEYS.keys, unauthenticated=Unauthenticated.ALLOW)
    with pytest.raises(ConfigError, match=r"listen\.gateway"):
        refuse_exposure(Config(listen=Listen(gateway=EVERYWHERE), gateway=gateway), insecure=False)


def test_rejecting_everyone_is_refused_too_because_it_serves_nobody() -> None:
    gateway = Gateway(unauthenticated=Unauthenticated.REJECT)
    with pytest.raises(ConfigError, match=r"listen\.gateway"):
        refuse_exposure(Config(listen=Listen(gateway=EVERYWHERE), gateway=gateway), insecure=False)


@pytest.mark.parametrize("plane", ["picker", "admin"])
def test_ports_without_credentials_stay_on_loopback(plane: str) -> None:
    listen = Listen(picker=EVERYWHERE) if plane == "picker" else Listen(admin=EVERYWHERE)
    with pytest.raises(ConfigError, match=rf"listen\.{plane}.*--insecure"):
        refuse_exposure(Config(listen=listen), insecure=False)


def test_certificates_of_callers_are_credentials_on_every_port() -> None:
    mutual = Listen(EVERYWHERE, EVERYWHERE, EVERYWHERE, Tls("cert.pem", "key.pem", "callers.pem"))
    refuse_exposure(Config(listen=mutual, gateway=KEYS), insecure=False)
    refuse_exposure(Config(listen=mutual, gateway=Gateway(unauthenticated=Unauthenticated.ALLOW)), insecure=False)
    with pytest.raises(ConfigError, match=r"listen\.gateway"):
        refuse_exposure(Config(listen=mutual), insecure=False)


@pytest.mark.parametrize("role", Role)
def test_tokens_are_credentials_on_the_picker_and_the_admin_port(role: Role) -> None:
    tokens = Access((AccessToken(Name("a"), role, Secret("${A}", "token")),))
    refuse_exposure(Config(listen=Listen(picker=EVERYWHERE, admin=EVERYWHERE), access=tokens), insecure=False)
    with pytest.raises(ConfigError, match=r"listen\.gateway"):
        refuse_exposure(Config(listen=Listen(gateway=EVERYWHERE), access=tokens), insecure=False)


def test_our_own_certificate_alone_keeps_nobody_out() -> None:
    listen = Listen(picker=EVERYWHERE, tls=Tls("cert.pem", "key.pem"))
    with pytest.raises(ConfigError, match=r"listen\.picker.*access\.tokens or listen\.tls\.client_ca"):
        refuse_exposure(Config(listen=listen), insecure=False)


def test_insecure_means_that_the_operator_knows() -> None:
    listen = Listen(EVERYWHERE, EVERYWHERE, EVERYWHERE)
    refuse_exposure(Config(listen=listen), insecure=True)
