"""Every number of the ranking formula, each with its reason and what it was measured on."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Weights"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Weights:
    """Boosts are in standard deviations of the fused score.

    Those of conversations are rounded from a conditional logit over whole conversations of two people (English, 760
    questions), fitted on four and tested on the fifth in turn; fitted on all five they were then tested, untouched,
    on chats with an assistant in Chinese, where they gained as much. What gained nothing when the others were there
    (length of a turn, rank, numbers and pictures in it, vectors of windows and of sentences, of the question without its
    question words, a second search with the rare words or the mean vector of the first one's best) is left out.
    """

    lexical: float = 0.28
    """Share of BM25; the rest is cosine. Meaning carries more, words settle names and numbers."""
    noted_lexical: float = 0.25
    """The same for facts: a short one shares few words with a question that it answers."""
    pool: int = 300
    """Rows of each list that count as retrieved; the others have the list's minimum, so that a long tail of rows
    without any match does not squeeze the deviations of those that match. Recall at 150 is 97 %."""
    before: float = 0.4
    """What a turn takes from the turn before it: what it goes on about."""
    answers: float = 0.33
    """What it takes besides when that turn asks: an answer is found by its question."""
    after: float = 0.2
    """What it takes from the turn after it, which often names what was meant."""
    second_before: float = 0.3
    second_after: float = 0.2
    """The same from the second turn on either side: in a chat of two, the one before is the same person's last word.
    On LoCoMo they give 0.7 of R@5 and 0.3 of R@10 with E5, and with USE no difference beyond chance."""
    session: float = 0.4
    """In long conversations, what a turn takes from the mean of the three best: a topic comes in clusters."""
    session_words: float = 0.8
    """In short ones, the z-score of the BM25 of the whole, for words spread over several turns."""
    short_session: float = 60.0
    """Mean turns a conversation up to which the whole of it is about few things."""
    named_speaker: float = 3.9
    """Boost when the turn's speaker is the only person the question names: people ask for what someone said."""
    user_turn: float = 1.0
    """In chats with an assistant what is asked for was mostly said by the user."""
    asks: float = 1.5
    """Among people, a turn that ends in a question tells little: taken off."""
    tells_time: float = 0.9
    """Among what is said, a turn with "yesterday" or "last week" tells of something that happened."""
    asked_time: float = 1.8
    """What it gets besides when the question asks for a time: it is what the answer is made of."""
    on_date: float = 3.6
    """Boost for a turn of a day that the question names; half of it a day off, as people round."""
    noted_date: float = 1.5
    """The same for a fact, whose day is that on which it was learned: weaker evidence."""
    about: float = 3.0
    """Boost for facts that name who speaks in the piece of conversation asked with, as notes about several people do: what
    is known of somebody else is hardly meant. Where no fact names anybody, it changes nothing."""
    spread: float = 0.6
    """What a turn loses for each better one of its conversation, as the log of their number: an answer may lie in several
    conversations, and the next turn of one that is there already adds less. Gains where several turns answer (recall at
    10 and 20), costs nothing where one does."""
    owner: float = 0.2
    """Share of rows from which a speaker owns the store: the name then pulls turns that address the person, not
    those that tell of them, so words and vector of a question to conversations lose it."""
    meaning: float = 0.85
    """Most that meaning alone gives to the absolute score: a paraphrase can be a near miss."""
    words: float = 0.6
    """Most that words alone give to the absolute score: shared words can mean something else."""
    only_words: float = 0.85
    """The same where there is no vector to say so: without one, half of the question's words must be enough."""
    unworded: float = 0.6
    """Share of what it lacks to certainty that is taken off the meaning of a Chinese fact that holds less than ``worded`` of a Chinese question: where
    terms are single characters, an answer nearly always shares some, and meaning alone is often chance. On MemoryBank
    and MADial-Bench it keeps the 93 % of answers that were kept and lets something in for 21 instead of 30 % of other
    questions. English answers share no word more often; there it would cost as much as it gives."""
    worded: float = 0.08
    """Word coverage from which a fact counts as sharing words: a common character alone is less."""
    beside: float = 0.8
    """What of its absolute score a turn lends to those beside it: the answer to a question that matches is as relevant,
    though it shares neither words nor meaning. With the default threshold this keeps 77.8 instead of 71.3 % of what long
    chats hold at rank ten (95.8 for 91.7 in chats with an assistant), for 1.8 instead of 1.5 of five turns on a question
    about anything else."""
    told_then: float = 0.4
    """Absolute score of a turn of a day gone by, or of a conversation, that the question names, whatever it says."""
    anchor: float = 0.5
    """Absolute score from which a fact may lend to those learned with it. Of 40 questions about anything else put to
    15 facts, 3 found a fact of this score, all in Chinese; at 0.4, 9 did."""
    association: float = 0.4
    """Absolute score of a lent fact: it passes the default threshold and outranks nothing that passes by itself."""
    tie: float = 0.03
    """Own score that a lent fact must have. In one sitting a person tells of many things: of five facts told in a row,
    all were recalled with any one of them when nothing was asked of their own; words alone then lend to none."""
    associates: int = 4
    """Most facts that one question may recall by association."""
