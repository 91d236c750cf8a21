from kinference.config.discovery import Discovery, DnsDiscovery, KubernetesDiscovery
from kinference.config.load import parse
from kinference.config.values import Count, Duration, HostPort, Name, Url


def discovery_of(text: str) -> Discovery | None:
    (pool,) = parse(f"pools: [{{name: p, discovery: {text}}}]").pools
    assert pool.endpoints == ()
    return pool.discovery


def test_dns_needs_a_name_and_may_have_the_rest() -> None:
    assert discovery_of("{dns: {name: vllm.models.svc}}") == Discovery(dns=DnsDiscovery(Name("vllm.models.svc")))
    assert discovery_of("{dns: {name: vllm, port: 8000, interval: 5s, server: '10.96.0.10:53'}}") == Discovery(
        dns=DnsDiscovery(Name("vllm"), Count(8000), Duration(5.0), HostPort("10.96.0.10", 53))
    )


def test_kubernetes_takes_labels_a_service_or_an_inference_pool() -> None:
    assert discovery_of("{kubernetes: {match_labels: {app: vllm}, target_ports: [8000, 8001]}}") == Discovery(
        kubernetes=KubernetesDiscovery({"app": "vllm"}, target_ports=(Count(8000), Count(8001)))
    )
    assert discovery_of("{kubernetes: {service: engines, namespace: ml, target_ports: [80]}}") == Discovery(
        kubernetes=KubernetesDiscovery(service=Name("engines"), target_ports=(Count(80),), namespace=Name("ml"))
    )
    assert discovery_of("{kubernetes: {inference_pool: chat, api: 'http://127.0.0.1:8001'}}") == Discovery(
        kubernetes=KubernetesDiscovery(inference_pool=Name("chat"), api=Url("http", "127.0.0.1", 8001))
    )


def test_two_that_are_written_alike_are_the_same() -> None:
    text = "{kubernetes: {match_labels: {app: vllm}, target_ports: [8000]}}"
    assert discovery_of(text) == discovery_of(text)
    assert discovery_of(text) != discovery_of(text.replace("8000", "8001"))
