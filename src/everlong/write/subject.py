"""Whether a number, a day or a place in a statement says which thing is meant, or what is said of it.

"Box 5 holds the keys" and "box 8 holds the keys" are about two boxes; "I am 30" and "I am 31" are about one person. What
cannot be told stays beside the other: two facts can still be sorted out, a lost one cannot.
"""

from __future__ import annotations

import re
from typing import Final

__all__ = ["NUMBER", "one_of_several", "qualifiers", "said_beside", "subject_of", "value_at"]

NUMBER: Final = re.compile(r"\d+(?:[.,:/-]\d+)*\s*(?:[a-z%°€$]+|[\u4e00-\u9fff])?|[一二两三四五六七八九十百千万]+")
_DAYS: Final = r"mon|tues|wednes|thurs|fri|satur|sun"
_QUALIFIER: Final = re.compile(
    rf"\b(?:(?:{_DAYS})days?|weekdays?|weekends?|mornings?|afternoons?|evenings?|nights?|spring|summers?|autumn|winters?"
    r"|january|february|march|april|june|july|august|september|october|november|december"
    r"|first|second|third|fourth|fifth|last|previous|former|next|other|older|elder|eldest|oldest|younger|youngest"
    r"|left|right|upper|lower|front|back|home|work|office|private|personal|business|primary|secondary|main|spare"
    r"|maternal|paternal|breakfast|lunch|dinner)\b"
    r"|周[一二三四五六日天末]|星期[一二三四五六日天]|礼拜[一二三四五六日天]|早上|上午|中午|下午|晚上|夜里|春天|夏天|秋天|冬天"
    r"|第[一二三四五六七八九十\d]+|大(?=儿子|女儿|姐|哥|舅|姑|姨)|小(?=儿子|女儿|妹|弟)|左|右|工作|私人|公司|家里|备用|早餐|午餐|晚餐"
    r"|[\w.+-]+@[\w.-]+"
)
"""What sets one thing apart from another of its kind."""
_SEVERAL: Final = re.compile(
    r"\b(?:son|daughter|child|kid|baby|twin|brother|sister|sibling|cousin|uncle|aunt|nephew|niece|grand\w+|friend|colleague"
    r"|coworker|neighbou?r|roommate|student|teacher|doctor|client|customer|dog|cat|pet|horse|bird|car|bike|truck|house"
    r"|apartment|flat|job|phone|laptop|computer|tablet|server|account|card|bag|box|shelf|room|class|course|lesson|book"
    r"|project|team|company|shop|order|ticket|flight|meeting|exam|trip|he|she|it|they)(?:'s)?\b(?! numbers?\b)"
    r"|儿子|女儿|孩子|宝宝|哥哥|弟弟|姐姐|妹妹|表[哥弟姐妹]|堂[哥弟姐妹]|叔叔|舅舅|阿姨|姑姑|朋友|同事|邻居|室友|学生|老师|客户"
    r"|猫|狗|宠物|车|自行车|房子|公寓|电脑|账号|卡|箱|盒|房间|教室|课|书|项目|团队|订单|航班|会议|考试|他|她|它"
)
"""Things and people of which one may have several without saying so."""
_NOW: Final = re.compile(r"\b(?:now|currently|these days|nowadays|anymore)\b|现在|目前|如今|已经|改成|换成|变成")
_BESIDE: Final = re.compile(
    r"\b(?:also|too|as well|another|part[- ]time|additionally|besides|sometimes|in addition)\b|也|还|另外|另一|兼职|同时|有时"
)
_VERBS: Final = "have own weigh earn need want pay work sleep drink eat run walk take speak use spend save owe manage lead live prefer like"
_STATE: Final = re.compile(
    r"\b(?:is|are|am|has|costs?|contains?|holds?|(?:"
    + "|".join(_VERBS.split())
    + r")s?|lasts?|measures?|expires?|opens?|starts?|runs)\b|(?<=i)'m\b|'ve\b"
    r"|是|有|为|住在|在|叫|养|身高|体重|重|高|今年|现在|目前|已经|每[天周月年日晚]|月薪|年薪|工资|预算|喝|跑|睡|花|带|管理|需要|放"
)
"""Where what is said begins: the present, not what happened once (she bought 2, then 3)."""
_PAST: Final = re.compile(r"\b(?:was|were|had)\b")
_COUNTS: Final = re.compile(
    r"(?:\b(?:is|are|am|has|costs?|contains?|lasts?|measures?|(?:"
    + "|".join(_VERBS.split())
    + r")s?|of|to|at|about|around|over|under|only|now|currently|exactly|roughly|nearly|almost|aged|a|an|already|just|up|than"
    r"|least|most|and|with|'m|'ve)|(?<=i)'m|'ve|[:：$€£¥~]|number|numbers)\s*$"
    r"|(?:^|[\s是有为约到达重高共才只要喝跑睡花带年在已经天周月日晚薪资算:：，, 户我养理]|养了|用户|工资|身高|体重)$"
)
"""What stands before an amount; a noun before a number makes it the number of a thing: turn 20, room 305."""
_PIECE: Final = re.compile(r"[号楼层班栋室期章集路线区版代课箱排页届]")


def qualifiers(plain: str) -> frozenset[str]:
    return frozenset(match[0].rstrip("s") for match in _QUALIFIER.finditer(plain))


def subject_of(plain: str) -> frozenset[str]:
    """The numbers and qualifiers before what is said: which thing it is about."""
    said = _PAST.search(plain) or _STATE.search(plain)
    head = plain[: said.start()] if said else ""
    return qualifiers(head) | {"".join(match[0].split()) for match in NUMBER.finditer(head)}


def one_of_several(head: str, successor: str) -> bool:
    """Whether ``head`` may mean another such thing each time, and the later statement does not say that it changed."""
    return bool(_SEVERAL.search(head)) and not _NOW.search(successor)


def said_beside(successor: str) -> bool:
    """Whether a statement says itself that it comes on top of others."""
    return bool(_BESIDE.search(successor))


def value_at(plain: str, number: re.Match[str], successor: str) -> bool:
    """Whether a number is an amount that one subject has, so that another one can take its place."""
    head = plain[: number.start()]
    said = _STATE.search(head) or re.fullmatch(r"(?:用户|我)", head)
    if not said or not _COUNTS.search(head) or one_of_several(head, successor):
        return False
    return not _PIECE.search(number[0] + plain[number.end() : number.end() + 1])
