"""What goes over the connection to an OPC UA server: chunks, of which no more is taken than agreed.

Source: https://reference.opcfoundation.org/Core/Part6/v105/docs/7.1.2 (headers, Hello, Acknowledge)
"""

from __future__ import annotations

import asyncio
import struct
from typing import Any

from asyncua import ua
from asyncua.client.ua_client import UASocketProtocol
from asyncua.common.connection import TransportLimits
from asyncua.common.utils import Buffer
from asyncua.crypto.security_policies import SecurityPolicy
from asyncua.ua.ua_binary import header_from_binary, struct_from_binary, uatcp_to_binary
from asyncua.ua.uaerrors import UaStatusCodeError

from headrace.connectors.opcua.values import Malformed

MOST_BYTES = 16 * 1024 * 1024
MOST_CHUNKS = 256
CHUNK_BYTES = 65_536
"""What a server may send as one message, in how many pieces, and how large those may be."""

SMALLEST_CHUNK = 12
"""Bytes of the head of every chunk but the very first, which is larger."""
_LENGTH_ENDS = 8

_length = struct.Struct("<4xI").unpack_from


class Chunks:
    """The octets that have come of a chunk that is not complete."""

    def __init__(self) -> None:
        self._rest = bytearray()

    def cut(self, data: bytes) -> bytes:
        """Return the chunks that are complete now that ``data`` has come as well.

        Raises:
            Malformed: a head tells of a chunk that is larger than agreed, or than its own head. The
                rest of such a chunk is not waited for.
        """
        rest, end = self._rest, 0
        rest += data
        while len(rest) - end >= _LENGTH_ENDS:
            (length,) = _length(rest, end)
            if not SMALLEST_CHUNK <= length <= CHUNK_BYTES:
                raise Malformed
            if len(rest) - end < length:
                break
            end += length
        complete = bytes(rest[:end])
        del rest[:end]
        return complete


class Wire(UASocketProtocol):
    """The client library's connection, with a hello and a way of receiving that are ours.

    The library agrees to anything, waits for as many octets as a head announces, copies all that it
    has with each that comes, and hangs up without a word to those who wait when it cannot read them.
    """

    def __init__(self, timeout: float, security_policy: SecurityPolicy) -> None:
        super().__init__(timeout, security_policy)
        self._chunks = Chunks()

    async def send_hello(
        self, url: str, max_messagesize: int = MOST_BYTES, max_chunkcount: int = MOST_CHUNKS
    ) -> ua.Acknowledge:
        """Agree on limits: ours for what comes, those of the server for what goes.

        The driver says that it takes anything, and then mixes up the two sides.
        """
        hello = ua.Hello(0, CHUNK_BYTES, CHUNK_BYTES, MOST_BYTES, MOST_CHUNKS, url)  # type: ignore[arg-type]
        answered = self._callbackmap[0] = asyncio.get_running_loop().create_future()
        if self.transport is None:
            raise ConnectionResetError
        self.transport.write(uatcp_to_binary(ua.MessageType.Hello, hello))  # type: ignore[arg-type]
        answer: ua.Acknowledge = await answered
        piece = min(CHUNK_BYTES, answer.ReceiveBufferSize or CHUNK_BYTES)  # some say 0
        limits = TransportLimits(CHUNK_BYTES, piece, MOST_CHUNKS, MOST_BYTES)
        self._connection._limits = limits
        return answer

    def data_received(self, data: bytes) -> None:
        """Hand on the answers that are complete; what cannot be read ends the connection."""
        try:
            complete = Buffer(self._chunks.cut(data))
            while complete:
                self._receive(complete)
        except UaStatusCodeError as said:
            self._break_off(said)
        except Exception:
            self._break_off(Malformed())

    def _receive(self, chunks: Buffer) -> None:
        """Take in the first of some chunks."""
        head: Any = header_from_binary(chunks)
        if head.ChunkType == ua.ChunkType.Abort:
            raise Malformed  # there will be no answer: whoever waits for it shall know
        message: Any = self._connection.receive_from_header_and_body(head, chunks)
        if isinstance(message, ua.ErrorMessage):
            message.Error.check()
            raise Malformed
        if isinstance(message, ua.Acknowledge):
            self._call_callback(0, message)
        elif message is not None:
            self._answered(head, message)

    def _answered(self, head: Any, message: Any) -> None:
        if head.MessageType == ua.MessageType.SecureOpen:
            self._open(message.body())
        self._call_callback(message.request_id(), message.body())

    def _open(self, body: Buffer) -> None:
        """Use the keys that the server has answered with, or raise why it gives none."""
        self.check_answer(body, "")
        asked = self._open_secure_channel_exchange
        if not isinstance(asked, ua.OpenSecureChannelParameters):
            raise Malformed  # nobody asked
        answer = struct_from_binary(ua.OpenSecureChannelResponse, body)
        answer.ResponseHeader.ServiceResult.check()
        self._connection.set_channel(answer.Parameters, asked.RequestType, asked.ClientNonce)
        self._open_secure_channel_exchange = answer

    def _break_off(self, cause: Exception) -> None:
        """Tell all who wait why nothing comes any more, and read nothing more."""
        self._fail_all_pending(cause)
        if self.transport is not None:
            self.transport.abort()
