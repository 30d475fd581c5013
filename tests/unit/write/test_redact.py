"""Secrets are taken out and ordinary text is left alone, in English and in Chinese, by every door."""

from __future__ import annotations

import random
import string
from time import perf_counter
from typing import TYPE_CHECKING, Any

import pytest
from langchain_core.messages import HumanMessage

from everlong import Scope, open_memory
from everlong.write.redact import MARK, Redactor

if TYPE_CHECKING:
    from collections.abc import Iterator

    from everlong.memory import Memory, ScopedMemory

_draw = random.Random(7)
hexa = "0123456789abcdef"


def r(length: int, letters: str = string.ascii_letters + string.digits) -> str:
    """A made-up token; drawn, so that no scanner takes this file for a leak."""
    return "".join(_draw.choice(letters) for _ in range(length - 2)) + "a1"


SECRETS = [
    "my password is hunter2",
    "The password for the router is Tr0ub4dor&3.",
    "password: correcthorse9",
    "pwd=S3cr3t!x",
    "my wifi password is swordfish, please remember",
    "the admin password was changed to Winter2025!",
    '{"password": "p@ssw0rd!"}',
    "DB_PASSWORD=kX9vLq2p",
    "passphrase: 'violet-otter-7'",
    "Log in with ann / hunter2",
    "my PIN is 4821",
    "the door code is 2580",
    "verification code: 839201",
    "cvv 123",
    "The OTP is 449 102",
    "API key: sk-" + r(32),
    "here is my key sk-proj-" + r(48),
    "sk-ant-api03-" + r(60),
    "OPENAI_API_KEY=" + "sk-" + r(40),
    "AKIA" + r(16).upper(),
    "aws_secret_access_key = " + r(40),
    "ghp_" + r(36),
    "github_pat_" + r(22) + "_" + r(59),
    "glpat-" + r(20),
    "xoxb-1234567890-" + r(24),
    "AIza" + r(35),
    "hf_" + r(34),
    "npm_" + r(36),
    "sk_live_" + r(24),
    "Authorization: Bearer " + r(40),
    "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U",
    "-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXktdjEAAAAA\nQyNTUxOQAAACB\n-----END OPENSSH PRIVATE KEY-----",
    "-----BEGIN RSA PRIVATE KEY-----\nMIIEpAIBAAKCAQEA",
    "postgres://ann:s3cretPw@db.example.com:5432/app",
    "mongodb+srv://admin:Xy7zPq@cluster0.mongodb.net/",
    "redis://:r3disPass@localhost:6379/0",
    "Server=db;User Id=sa;Password=Pa55word!;",
    "AccountName=x;AccountKey=" + r(86) + "==",
    "my card is 4111 1111 1111 1111",
    "5500005555555559 exp 12/27",
    "amex 378282246310005",
    "6212345678901232",
    "client_secret: " + r(32),
    "the api key for the weather service is a1b2c3d4e5f6a7b8",
    "slack token: " + r(24),
    "https://hooks.slack.com/services/T00000000/B00000000/" + r(24),
    "123456789:AA" + r(33),
    "secret = '" + r(20) + "'",
    "我的密码是 hunter2",
    "密码：abc12345",
    "我的 WiFi 密码是 Sunny2024，别告诉别人",
    "数据库密码改成 Qwer!234 了",
    "登录密码为qwe123456",
    "我的支付密码是 258013",
    "验证码 839201",
    "验证码是：4432",
    "银行卡密码是123456",
    "我的卡号是 6222 0212 3456 7894",
    "API 密钥：sk-" + r(32),
    "访问令牌是 " + r(32),
    "我的 token 是 " + r(30),
    "账号: ann / Pass1234",
    "服务器口令：root@2024",
    "私钥：\n-----BEGIN PRIVATE KEY-----\nMIIE\n-----END PRIVATE KEY-----",
    "我的openai api key是sk-" + r(40),
    "用户名 admin 密码 admin123",
    "密码设置为 Zx9!kk",
    "mysql://root:123456@127.0.0.1/test",
    "LTAI" + r(20),
    "微信的密码还是 moon8899。",
    "解锁密码是1357",
]
HARMLESS = [
    "I forgot my password",
    "How do I reset my password?",
    "The password is required",
    "my password is wrong",
    "the password is too short",
    "Your password was changed yesterday",
    "password = getpass.getpass()",
    "password: str",
    "password=os.environ['DB_PASSWORD']",
    "The password is stored in the vault",
    "my password manager is Bitwarden",
    "Passwords are hashed with bcrypt",
    "I use 1Password",
    "The password field is empty",
    "password is case-sensitive",
    "the secret is patience",
    "The key is consistency",
    "my secret ingredient is nutmeg",
    "the key to success is hard work",
    "tokens: 4096",
    "max_tokens=2048",
    "The token is expired",
    "access token is missing",
    "token = tokenizer.decode(ids)",
    "API key is invalid",
    "set api_key=YOUR_API_KEY",
    "api_key = os.getenv('OPENAI_API_KEY')",
    "postgresql://user:password@localhost/db",
    "https://example.com:8080/path@x",
    "postgres://ann:<password>@db/x",
    "http://localhost:8000/docs",
    "mailto:ann@example.com",
    "id 550e8400-e29b-41d4-a716-446655440000",
    "commit 9fceb02d0ae598e95dc970b74767f19372d61af8",
    "sha256 e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    "md5 d41d8cd98f00b204e9800998ecf8427e",
    "order number 2025113000012345",
    "Order #4938271650",
    "order 1234 5678 9012 3456",
    "tracking number 1Z999AA10123456784",
    "SF1234567890123",
    "ISBN 978-3-16-148410-0",
    "timestamp 1764560000000",
    "1764560000000000000",
    "call me at 555-0100",
    "pi is 3.14159265358979",
    "version 1.2.3.4",
    "the pin 13 drives the LED",
    "set the GPIO pin to 4",
    "error code: 404",
    "zip code 94107",
    "the area code is 0755",
    "code 128 barcodes",
    "pip install scikit-learn sk-learn-contrib-something",
    "import sklearn",
    "```python\ndef key(x): return x['key']\n```",
    "git checkout -b feature/token-refresh-2024",
    "The basic idea is simple",
    "bearer of bad news",
    "fact_0642f3a1b2c3d9f0a1b2c3d4",
    "msg_01XFDUDYJgAoi7kV1234abcd",
    "s3://bucket/key/2024-01-01.csv",
    "我忘记密码了",
    "怎么重置密码？",
    "密码是必填项",
    "密码错误",
    "密码太短了",
    "密码字段是 string 类型",
    "我的密码不对",
    "密码是什么？",
    "秘密是坚持",
    "关键是多练习",
    "令牌过期了",
    "验证码收不到",
    "订单号 2025113000012345",
    "快递单号 SF1234567890123",
    "手机号 13800138000",
    "身份证 11010519491231002X",
    "我的QQ是 123456789",
    "会议号 123 456 789",
    "提交 9fceb02d0ae598e95dc970b74767f19372d61af8",
    "密码学是我的专业",
    "密码管理器用的是 Bitwarden",
    "端口是 5432",
    "密码至少8位",
    "错误码：404",
    "邮编 100080",
    "区号是0755",
    "账号：ann",
    "我的生日是1990-05-12",
    "密码强度为 strong",
    "token 是什么意思",
    "这个 token 数量是 4096",
    "我每天走 10000 步",
]
MORE_SECRETS = [
    "the password to my laptop is Mango_77",
    "New password: zebra-Lamp-12",
    "pass phrase? no: passphrase = blue.horse.9",
    "PGPASSWORD=tiger88",
    "root password has been reset to 8Kd!pw",
    "My email password is iloveyou",
    "The alarm code is 7741",
    "my cvc is 908",
    "unlock code: 0042",
    "export ANTHROPIC_API_KEY=sk-ant-api03-" + r(50),
    "auth_token: " + r(24),
    "X-Api-Key: " + r(32),
    "the secret key for staging is " + r(30),
    "access token for github is gho_" + r(36),
    "ASIA" + r(16).upper(),
    "curl -H 'Authorization: Bearer " + r(32) + "'",
    "amqp://guest:gu3st@mq:5672",
    "ftp://joe:pw1234@files.example.com/x",
    "4012 8888 8888 1881",
    "Mastercard 5105-1051-0510-5100",
    "bot token 110201543:AA" + r(33),
    "sk_test_" + r(24),
    "SG." + r(22) + "." + r(43),
    "dapi" + r(32, hexa),
    "邮箱密码是Lily2020",
    "把密码设为 Star#99",
    "密码=888888",
    "我家门锁密码是 6688",
    "支付密码为 123987",
    "短信验证码：557201",
    "微信支付密码是778899，你别说",
    "密钥为 " + r(24),
    "我的api_key=" + r(28),
    "口令：open-sesame1",
    "信用卡 5555 5555 5555 4444",
    "redis 密码 R3dis!x",
    "登录用 root / toor99",
]
MORE_HARMLESS = [
    "please change the password policy",
    "the password was leaked",
    "password strength meter",
    "is the password correct?",
    "my password is the same as before",
    "Enter password:",
    "password: [hidden]",
    "the key is in the drawer",
    "my API key is not working",
    "API keys are rotated monthly",
    "secret santa is on Friday",
    "token: str = ''",
    "Bearer authentication is used",
    "card game at 8pm",
    "call 911",
    "room code is B12",
    "code review is at 1400",
    "pin the version to 3.11",
    "postgres://localhost/db",
    "https://user@example.com/repo.git",
    "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    "invoice 100200300400500",
    "4 1111 apples",
    "+1 415 555 0132",
    "uuid=123e4567-e89b-12d3-a456-426614174000",
    "key=lambda x: x[0]",
    "dict(key='value1', token_type='bearer')",
    "secrets.token_urlsafe(16)",
    "AKIA is a prefix of AWS keys",
    "sk-learn",
    "密码忘了怎么办",
    "密码是我的生日",
    "支付密码错误三次",
    "密码一定要复杂",
    "验证码怎么收不到",
    "密钥是什么",
    "口令红包",
    "我的密码还是老样子",
    "token 过期",
    "卡号在哪里看",
    "房间号 1203",
    "单号 773012345678901",
    "编号A20231101",
    "密码为空",
    "密码是数字",
    "设置密码的步骤有3步",
]

PERSONAL = {
    "mail me at ann.lee@example.com please": "mail me at [redacted: e-mail] please",
    "我的邮箱是ann@example.cn，谢谢": "我的邮箱是[redacted: e-mail]，谢谢",
    "我的手机号是13800138000": "我的手机号是[redacted: phone]",
    "call +44 20 7946 0958 tomorrow": "call [redacted: phone] tomorrow",
    "my number is (415) 555-2671.": "my number is [redacted: phone].",
    "身份证号 11010519491231002X": "身份证号 [redacted: id number]",
    "SSN 078-05-1120": "SSN [redacted: id number]",
    "passport number is X1234567": "passport number is [redacted: id number]",
    "护照号：E12345678": "护照号：[redacted: id number]",
    "IBAN DE89 3704 0044 0532 0130 00": "IBAN [redacted: iban]",
}
NOT_PERSONAL = [
    "身份证 110105194912310021 的校验位是错的",
    "DE89 3704 0044 0532 0130 01 has a wrong check digit",
    "2025-11-30 12:00",
    "order 138001380001234",
    "@ann said hello",
    "3.14159265358979",
    "订单号 2025113000012345",
    "I paid 12 345 678 yen",
]


@pytest.mark.parametrize("said", [*SECRETS, *MORE_SECRETS])
def test_a_secret_is_taken_out(said: str) -> None:
    assert MARK in Redactor().text(said)


@pytest.mark.parametrize("said", [*HARMLESS, *MORE_HARMLESS])
def test_ordinary_text_is_left_alone(said: str) -> None:
    assert Redactor().text(said) == said


@pytest.mark.parametrize(("said", "left"), PERSONAL.items())
def test_personal_data_goes_when_that_is_wished(said: str, left: str) -> None:
    assert Redactor("personal").text(said) == left
    assert Redactor("secrets").text(said) == said
    assert Redactor("none").text(said) == said


@pytest.mark.parametrize("said", NOT_PERSONAL)
def test_what_only_looks_personal_stays(said: str) -> None:
    assert Redactor("personal").text(said) == said


@pytest.mark.parametrize(
    ("said", "left"),
    [
        ("I live in Berlin, my password is hunter2.", "I live in Berlin, my password is [redacted: password]."),
        ("我住上海，我的密码是 abc123，别忘了。", "我住上海，我的密码是 [redacted: password]，别忘了。"),
        ("pay with 4111 1111 1111 1111 today", "pay with [redacted: card] today"),
        ("postgres://ann:s3cretPw@db.example.com/x", "postgres://ann:[redacted: password]@db.example.com/x"),
    ],
)
def test_the_harmless_rest_stays(said: str, left: str) -> None:
    assert Redactor().text(said) == left
    assert Redactor().text(left) == left


def test_ten_random_numbers_are_no_card() -> None:
    wrong = "4111 1111 1111 1112"
    assert Redactor().text(wrong) == wrong


def test_values_are_searched_and_keys_count_as_labels() -> None:
    given = {"password": "hunter2", "wifi": ["pwd: abc12345"], "age": 41, "raw": b"\xff\xfe", "text": b"my pin is 4821"}
    assert Redactor().value(given) == {
        "password": "[redacted: password]",
        "wifi": ["pwd: [redacted: password]"],
        "age": 41,
        "raw": b"\xff\xfe",
        "text": b"my pin is [redacted: code]",
    }


@pytest.mark.parametrize(
    "unit",
    [
        "a",
        "1",
        "1 ",
        "-",
        "password is ",
        "sk-",
        "eyJ",
        "a:",
        "://a:",
        "key=",
        "密码",
        "-----BEGIN PRIVATE KEY-----\n",
        "AAAA ",
        "a@",
        "a.",
        "+1 ",
    ],
)
def test_long_input_takes_linear_time(unit: str) -> None:
    started = perf_counter()
    Redactor("personal").text(unit * (200_000 // len(unit)))
    assert perf_counter() - started < 5


# ------------------------------------------------------------------------------------------------------ doors


@pytest.fixture
def memory() -> Iterator[Memory]:
    with open_memory("sqlite://", embedder="none", worker="none") as opened:
        yield opened


@pytest.fixture
def ann(memory: Memory) -> ScopedMemory:
    return memory.at(Scope(user="ann", session="t1"))


@pytest.mark.parametrize(
    "raw",
    [
        ("user", "my password is hunter2, I like tea"),
        {"role": "user", "content": [{"type": "text", "text": "my password is hunter2, I like tea"}], "id": "m1"},
        HumanMessage("my password is hunter2, I like tea"),
    ],
)
def test_messages_of_every_shape(ann: ScopedMemory, raw: Any) -> None:
    added = ann.add([raw])
    assert added.redacted == {"password": 1}
    assert [m.content for m in ann.messages()] == ["my password is [redacted: password], I like tea"]
    assert ann.add([raw]).status == "duplicate"


def test_every_other_door(ann: ScopedMemory) -> None:
    remembered = ann.remember("The wifi password is swordfish9")
    assert remembered.redacted == {"password": 1}
    assert remembered.fact is not None
    revised = ann.revise(remembered.fact.id, content="密码：abc12345", metadata={"token": "a1" * 10})
    assert (revised.content, revised.metadata) == ("密码：[redacted: password]", {"token": "[redacted: key]"})
    assert ann.forget(revised.id, reason="my pin is 4821").fact.reason == "my pin is [redacted: code]"
    assert ann.update_profile(attributes={"password": "hunter2"}).attributes == {"password": "[redacted: password]"}
    assert ann.files.write("/notes.md", "redis://:s3cret9@host/0").content == b"redis://:[redacted: password]@host/0"
    assert (
        ann.add(
            [
                (
                    "user",
                    "hi",
                )
            ],
        ).redacted
        == {}
    )


def test_the_journal_counts_and_never_tells(ann: ScopedMemory) -> None:
    ann.add([("user", "我的密码是 hunter2，卡号 4111 1111 1111 1111")])
    entries = ann.journal().items
    [entry] = [e for e in entries if e.action == "redacted"]
    assert entry.payload == {"operation": "add", "counts": {"card": 1, "password": 1}}
    assert "hunter2" not in repr(entries) and "4111" not in repr(entries)


def test_nothing_is_taken_out_when_it_is_turned_off() -> None:
    with open_memory("sqlite://", embedder="none", worker="none", redact="none") as memory:
        ann = memory.at(Scope(user="ann", session="t1"))
        assert ann.add([("user", "my password is hunter2")]).redacted == {}
        assert ann.messages()[0].content == "my password is hunter2"


def test_no_secret_reaches_a_fact_or_the_question(memory: Memory, ann: ScopedMemory) -> None:
    ann.add([("user", "I live in Berlin and my password is hunter2. 我的密码是 hunter2，我对花生过敏。")])
    memory.drain()
    facts = {fact.content for fact in ann.facts().items}
    assert not any(MARK in fact or "hunter2" in fact for fact in facts)
    assert "我对花生过敏" in facts
    assert "hunter2" not in repr(ann.recall("password hunter2").hits)


@pytest.mark.parametrize("hidden", ["\u200b", "\u2060", "\ufeff", "\u00ad"])
@pytest.mark.parametrize("words", ["my key is {}", "我的密钥是 {}"])
def test_characters_nobody_sees_do_not_hide_a_key(words, hidden):
    from everlong.write.redact import Redactor

    key = "sk-ab" + hidden + "cdefghijklmnopqrstuvwxyz0123456789ABCDEF12"
    assert "cdefghij" not in Redactor().text(words.format(key))
