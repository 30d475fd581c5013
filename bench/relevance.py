"""What the default threshold keeps and what it lets in, on lists that nothing was tuned with.

    python bench/relevance.py [--embedder use|e5|none]

Each list is one person's facts, a question to each of them, and questions about anything else. Printed are the share of
questions whose fact is found, the share of other questions that find something, and how many hits those find.
"""

from __future__ import annotations

import argparse

from everlong import Scope, open_memory

EN_FACTS = """I work as a tram driver in Gothenburg|My brother Felix is a beekeeper|I am allergic to shellfish
I keep a greyhound called Comet|I play the trombone in a brass band|My passport runs out in March
I always write my code in Kotlin|I'm saving up for a camper van|My landlord's name is Mrs Okafor
I can't stand the smell of lavender|Every Thursday I coach a girls' football team|I broke my left wrist skiing in January
My favourite writer is Ursula Le Guin|We are moving to Bristol in autumn|I take the stairs because I'm afraid of lifts
My grandmother taught me to bake rye bread|I collect old railway maps|I sleep badly when the moon is full
I quit sugar at New Year|Our son Oskar starts kindergarten in August|I drive an electric Renault Zoe
My team's standup is at half past nine|I am writing a thesis on glacier melt|I speak Portuguese with my wife
The wifi password at the cottage is on the fridge|I prefer window seats on planes|My dentist is Dr Lindqvist
I grow tomatoes on the balcony|I voted for the new cycle lane|I owe Jonas forty euros"""
EN_ASKED = """What's my job?|What does Felix do for a living?|Which food must I avoid?
What is my dog called?|Which instrument do I play?|When does my passport expire?
Which programming language do I use?|What am I putting money aside for?|Who do I rent my flat from?
Which scent do I hate?|What do I do on Thursdays?|How did I hurt my wrist?
Who is the author I like most?|Which city are we moving to?|Why don't I use the elevator?
Who showed me how to make bread?|What do I collect?|When do I have trouble sleeping?
What did I stop eating this year?|When does Oskar go to kindergarten?|Which car do I have?
At what time is our daily standup?|What is my thesis about?|Which language do I speak at home with my wife?
Where can I find the wifi password of the cottage?|Where do I like to sit on a plane?|Who is my dentist?
Which vegetables do I grow?|What do I think about the cycle lane?|How much money do I owe Jonas?"""
EN_OTHER = """Write a haiku about autumn leaves|Convert 30 inches to centimetres|What is the capital of Mongolia?|Explain recursion
Fix the syntax error in this line|Who painted the Night Watch?|Summarise the article below|How does a heat pump work?
Give me a regex for e-mail addresses|Tell me a joke|What is 17 times 23?|Translate "good night" into Greek
Why is the sky blue?|List the planets by size|How do I undo the last git commit?|What does HTTP 418 mean?
Thanks, that helped|Make it shorter, please|Which year did the Berlin Wall fall?|How tall is Mount Kenya?
Draft an apology to a customer|What is the difference between TCP and UDP?|Sort this list alphabetically|Is a tomato a fruit?
How many bones does an adult have?|Compose a slogan for a bakery|What is inflation?|Who won the 1998 World Cup?
How do vaccines work?|Generate a random password|Good morning!|What's the weather in Lima?
Define photosynthesis|Check my grammar in this sentence|What is a black hole?|Turn this into a table
How do I boil an egg?|What is the boiling point of ethanol?|Who wrote Hamlet?|Continue"""
ZH_FACTS = """我在哥德堡开有轨电车|我哥哥阿飞是养蜂人|我对贝类过敏
我养了一条叫彗星的灵缇犬|我在铜管乐队里吹长号|我的护照三月份到期
我写代码一直用 Kotlin|我正在攒钱买一辆房车|我的房东是欧太太
我受不了薰衣草的味道|每周四我给女子足球队当教练|一月份滑雪时我摔断了左手腕
我最喜欢的作家是汪曾祺|我们秋天要搬到青岛|我怕坐电梯，所以总是走楼梯
奶奶教会了我做黑麦面包|我收藏旧的铁路地图|满月的时候我睡不好
从元旦起我戒糖了|我们的儿子小奥八月上幼儿园|我开的是一辆电动雷诺
我们组的站会是九点半|我在写一篇关于冰川融化的论文|我和妻子说葡萄牙语
乡下小屋的无线密码贴在冰箱上|坐飞机我喜欢靠窗|我的牙医是林医生
我在阳台上种番茄|我投票支持新的自行车道|我欠老周四百块钱"""
ZH_ASKED = """我是做什么工作的？|阿飞靠什么谋生？|我有什么东西不能吃？
我的狗叫什么名字？|我会什么乐器？|我的护照什么时候过期？
我用哪种编程语言？|我存钱是为了什么？|我租的是谁的房子？
我讨厌什么气味？|我星期四做什么？|我的手腕是怎么受伤的？
我最爱读谁的书？|我们要搬到哪个城市？|我为什么不乘电梯？
谁教我烤面包的？|我有什么收藏？|我什么时候会失眠？
今年我不再吃什么了？|小奥什么时候上幼儿园？|我的车是什么牌子？
我们每天几点开站会？|我的论文写的是什么？|我在家跟妻子讲什么语言？
小屋的无线网密码在哪里？|我坐飞机爱坐哪个位置？|给我看牙的医生是谁？
我种了什么菜？|我对自行车道是什么态度？|我欠老周多少钱？"""
ZH_OTHER = """写一首关于秋叶的俳句|三十英寸等于多少厘米|蒙古国的首都是哪里|解释一下递归
改正这一行的语法错误|夜巡是谁画的|总结下面这篇文章|热泵的原理是什么
给我一个匹配邮箱的正则表达式|讲个笑话|十七乘以二十三等于几|把晚安翻译成希腊语
天空为什么是蓝色的|按大小列出行星|怎么撤销上一次 git 提交|HTTP 418 是什么意思
谢谢，有用|请写短一点|柏林墙是哪一年倒的|肯尼亚山有多高
写一封给客户的道歉信|TCP 和 UDP 有什么区别|把这个列表按字母排序|番茄是水果吗
成年人有多少块骨头|给面包店想一句广告语|什么是通货膨胀|1998 年世界杯冠军是谁
疫苗是怎么起作用的|生成一个随机密码|早上好|利马的天气怎么样
光合作用的定义|检查这句话的语法|黑洞是什么|把这些内容变成表格
鸡蛋怎么煮|乙醇的沸点是多少|哈姆雷特是谁写的|继续"""


def listed(text: str) -> list[str]:
    """The entries of a list."""
    return [entry for line in text.split("\n") for entry in line.split("|")]


def measure(embedder: str, facts: list[str], asked: list[str], other: list[str]) -> tuple[float, float, float]:
    """Shares of questions whose fact is found and of others that find something, and hits of an other question."""
    memory = open_memory("sqlite://", embedder=embedder)
    for number, fact in enumerate(facts):
        memory.at(Scope(user="ann", session=f"s{number}")).remember(fact)
    ann = memory.at(Scope(user="ann"))
    kept = [
        fact in [hit.text for hit in ann.recall(question).hits] for fact, question in zip(facts, asked, strict=True)
    ]
    let_in = [len(ann.recall(question).hits) for question in other]
    memory.close()
    return sum(kept) / len(kept), sum(map(bool, let_in)) / len(let_in), sum(let_in) / len(let_in)


def main() -> None:
    """Prints a line for each language."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--embedder", default="use", choices=["use", "e5", "none"])
    embedder = options.parse_args().embedder
    lists = {"en": (EN_FACTS, EN_ASKED, EN_OTHER), "zh": (ZH_FACTS, ZH_ASKED, ZH_OTHER)}
    for language, texts in lists.items():
        kept, wrong, hits = measure(embedder, *map(listed, texts))
        print(
            f"{embedder} {language}: answers kept {kept:.0%}, something for other questions {wrong:.0%} ({hits:.2f} hits)"
        )


if __name__ == "__main__":
    main()
