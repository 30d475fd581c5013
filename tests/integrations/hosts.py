"""Stub models for other hosts: each answers in turn and keeps what its system prompts were."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import httpx2
from agents import OpenAIChatCompletionsModel
from anthropic import AsyncAnthropic
from llama_index.core.llms import ChatMessage, ChatResponse, CompletionResponse, CustomLLM, LLMMetadata, MessageRole
from openai import AsyncOpenAI, OpenAI
from pydantic import Field, PrivateAttr
from pydantic_ai.messages import ModelResponse, TextPart
from pydantic_ai.models.function import FunctionModel

if TYPE_CHECKING:
    from everlong.testing.model_server import ModelServer


def openai_client(server: ModelServer) -> OpenAI:
    return OpenAI(api_key="none", base_url=server.url, max_retries=0)


def agents_model(server: ModelServer) -> OpenAIChatCompletionsModel:
    client = AsyncOpenAI(api_key="none", base_url=server.url, max_retries=0)
    return OpenAIChatCompletionsModel("scripted", openai_client=client)


def system_of(body: dict[str, Any]) -> str:
    return "\n".join(str(turn["content"]) for turn in body["messages"] if turn["role"] == "system")


class Claude:
    """Anthropic's endpoint, below its client."""

    def __init__(self, *answers: str) -> None:
        self.answers, self.bodies = list(answers), []

    @property
    def systems(self) -> list[str]:
        return ["\n".join(part["text"] for part in body["system"]) for body in self.bodies]

    def client(self) -> AsyncAnthropic:
        transport = httpx2.MockTransport(self._answer)
        return AsyncAnthropic(api_key="none", http_client=httpx2.AsyncClient(transport=transport))

    def _answer(self, request: httpx2.Request) -> httpx2.Response:
        self.bodies.append(json.loads(request.content))
        text = self.answers.pop(0) if self.answers else "ok"
        answer = {"id": "msg_1", "type": "message", "role": "assistant", "model": "scripted", "stop_reason": "end_turn",
                  "stop_sequence": None, "usage": {"input_tokens": 1, "output_tokens": 1},
                  "content": [{"type": "text", "text": text}]}  # fmt: skip
        return httpx2.Response(200, json=answer)


class LlamaStub(CustomLLM):
    answers: list[str] = Field(default_factory=list)
    _systems: list[str] = PrivateAttr(default_factory=list)

    @property
    def systems(self) -> list[str]:
        return self._systems

    @property
    def metadata(self) -> LLMMetadata:
        return LLMMetadata(is_chat_model=True)

    def chat(self, messages: Any, **kwargs: Any) -> ChatResponse:
        self._systems.append("\n".join(m.content or "" for m in messages if m.role == MessageRole.SYSTEM))
        text = self.answers.pop(0) if self.answers else "ok"
        return ChatResponse(message=ChatMessage(text, role=MessageRole.ASSISTANT))

    async def achat(self, messages: Any, **kwargs: Any) -> ChatResponse:
        return self.chat(messages)

    def complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponse:
        raise NotImplementedError

    def stream_complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> Any:
        raise NotImplementedError


class PydanticStub:
    def __init__(self, *answers: str) -> None:
        self.answers, self.systems = list(answers), []
        self.model = FunctionModel(self._answer)

    def _answer(self, messages: Any, info: Any) -> ModelResponse:
        self.systems.append(info.instructions or "")
        return ModelResponse(parts=[TextPart(self.answers.pop(0) if self.answers else "ok")])
