import pytest

from kinference.control import errors
from kinference.control.bundle import Bundle, BundledRoute
from kinference.control.catalogue import Route
from kinference.control.convert import STATUS, bundle_told, decode, route_request, route_set, route_told
from kinference.control.routes import RouteRequest, RouteSet
from kinference.control.verify import ValidatedEndpoint
from kinference.errors import InvalidArgument, KinferenceError
from kinference.wire.proto import control_pb2 as later
from kinference.wire.proto import inference_pb2 as seed

ROUTE = Route("inference.local", "p", "m", 0, 3)


def test_every_refusal_of_the_control_plane_has_its_status() -> None:
    own = {each for each in vars(errors).values() if isinstance(each, type) and issubclass(each, KinferenceError)}
    assert own - {KinferenceError} - STATUS.keys() == {
        errors.Referred,
        errors.Taken,
    }  # the one is translated where it is met, the other is of provider records


def test_what_is_no_request_is_refused() -> None:
    for message in (None, b"\xff"):
        with pytest.raises(InvalidArgument):
            decode(later.SetRouteRequest, message)


def test_a_seed_request_is_understood_and_verify_means_nothing() -> None:
    sent = seed.SetClusterInferenceRequest(provider_name="p", model_id="m", route_name="r", verify=True, no_verify=True)
    request = decode(later.SetRouteRequest, sent.SerializeToString())
    assert route_request(request) == RouteRequest("r", "p", "m", no_verify=True)


def test_a_seed_client_understands_every_answer() -> None:
    validated = ValidatedEndpoint("https://h/v1", "openai_chat_completions")
    answer = seed.SetClusterInferenceResponse.FromString(route_set(RouteSet(ROUTE, validated), ""))
    assert (answer.version, answer.validation_performed, answer.validated_endpoints[0].url) == (3, True, "https://h/v1")
    told = seed.GetClusterInferenceResponse.FromString(route_told(ROUTE, ""))
    assert (told.provider_name, told.model_id, told.version, told.route_name) == ("p", "m", 3, "inference.local")


def test_an_answer_without_later_fields_is_the_seeds_own_to_the_byte() -> None:
    seeds = seed.GetClusterInferenceResponse(provider_name="p", model_id="m", version=3, route_name="inference.local")
    assert route_told(ROUTE, "") == seeds.SerializeToString()


def test_the_workspace_is_echoed() -> None:
    assert later.SetRouteResponse.FromString(route_set(RouteSet(ROUTE, None), "default")).workspace == "default"


@pytest.mark.parametrize("override", [None, "", ":rawPredict"])
def test_a_bundled_route_keeps_whether_its_override_is_there(override: str | None) -> None:
    route = BundledRoute("inference.local", "https://h", ("a",), "k", "m", "openai", 9, True, override)
    (told,) = later.GetInferenceBundleResponse.FromString(bundle_told(Bundle((route,)), 5)).routes
    assert told.HasField("request_path_override") is (override is not None)
    assert (told.timeout_secs, told.model_in_path, told.request_path_override) == (9, True, override or "")
