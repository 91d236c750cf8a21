"""What routing needs to know of a request."""

import msgspec

from kinference.ids import Address, ObjectRef
from kinference.vocabulary import Api, Need, QosClass


class Request(msgspec.Struct, frozen=True, gc=False):
    """One request as the decision sees it, built by the picker from the body and the call's metadata."""

    model: str
    """As the client wrote it, before aliases."""
    api: Api
    prompt: tuple[bytes, ...]
    """The canonical stream: what a chat template renders first comes first (tools, system, then messages), each
    element the raw bytes of its JSON, so that turn N is a prefix of turn N+1; pictures and the like by a digest."""
    prompt_bytes: int
    output_tokens: int | None = None
    """The most the client wants back; None when it does not say."""
    streaming: bool = False
    needs: frozenset[Need] = frozenset()
    qos: QosClass = QosClass.INTERACTIVE
    tenant: str = ""
    """"" is a value of its own: it matches a rule that names "" and nothing else."""
    pool: ObjectRef | None = None
    session: str = ""
    """Whatever the client gave that ties its turns together; "" when nothing did."""
    salt: str = ""
    """The client's `cache_salt`: engines share no prefix across salts."""
    failed: frozenset[Address | ObjectRef] = frozenset()
    """Endpoints and backends that this very request has been to in vain: not again."""
    attempts_left: int = 1
    """How often it can still be sent, this time included."""
    reaches: frozenset[Api] = frozenset()
    """APIs of other destinations that can serve the request by translation, both ways; empty when the caller cannot
    translate the answer."""
    is_patient: bool = False
    """It waits already, and rather goes on than be sent where everybody has failed."""
