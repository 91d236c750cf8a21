from kinference.gateway.options import GatewayOptions


def test_i4_an_agents_transcript_of_32_mib_fits_by_default() -> None:
    assert GatewayOptions().body_bytes_max == 32 * 1024 * 1024
