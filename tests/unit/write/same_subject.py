"""Pairs of statements, one after the other, and what should become of the later one: ``supersede`` the earlier,
``add`` beside it, or ``confirm`` it. ``TUNED`` was looked at while the rules were written; ``HELD_OUT`` was not."""

TUNED = [
    # English: another thing
    ("My box number 5 is full of 12 books", "My box number 8 is full of 30 books", "add"),
    ("Turn 19 was about the roof", "Turn 20 was about the roof", "add"),
    ("User's first job was at IBM", "User's second job was at IBM", "add"),
    ("User's daughter is 5 years old", "User's daughter is 9 years old", "add"),
    ("User has a car with 2 doors", "User has a car with 4 doors", "add"),
    ("User's son is named Tom", "User's son is named Jim", "add"),
    ("User works at Google on Mondays", "User works at the bakery on Tuesdays", "add"),
    ("User ran 5 km", "User ran 10 km", "add"),
    ("User bought 2 lamps", "User bought 3 lamps", "add"),
    ("The code for door 5 is 1234", "The code for door 6 is 1234", "add"),
    ("User's work email is ann@corp.example", "User's private email is ann@home.example", "add"),
    ("User's flight 301 leaves from gate 7", "User's flight 415 leaves from gate 9", "add"),
    ("User lives in Rome", "User also lives in Milan", "add"),
    # English: another value
    ("User is 30 years old", "User is 31 years old", "supersede"),
    ("User weighs 70 kg", "User weighs 68 kg", "supersede"),
    ("User has 2 cats", "User has 3 cats", "supersede"),
    ("User lives in Berlin", "User lives in Paris", "supersede"),
    ("User's phone number is 555-1234", "User's phone number is 555-9876", "supersede"),
    ("I earn 5000 euros a month", "I earn 6000 euros a month", "supersede"),
    ("User works for Siemens", "User now works for Bosch", "supersede"),
    ("User's name is Ann", "User's name is Anna", "supersede"),
    ("User leads a team of 9", "User leads a team of 12", "supersede"),
    # English: the same
    ("User prefers short answers", "User prefers answers that are short", "confirm"),
    ("User lives in Lisbon", "user lives in lisbon.", "confirm"),
    # Chinese: another thing
    ("我的一号箱装了冬衣", "我的二号箱装了冬衣", "add"),
    ("用户的5号箱子里有10本书", "用户的8号箱子里有30本书", "add"),
    ("周一的课在301教室", "周二的课在301教室", "add"),
    ("用户的儿子今年5岁", "用户的儿子今年9岁", "add"),
    ("用户买了2盏灯", "用户买了3盏灯", "add"),
    ("第19轮讨论了屋顶", "第20轮讨论了屋顶", "add"),
    ("用户的第一份工作在华为", "用户的第二份工作在华为", "add"),
    ("用户的工作邮箱是ann@corp.example", "用户的私人邮箱是ann@home.example", "add"),
    ("用户有一辆开了3年的车", "用户有一辆开了8年的车", "add"),
    ("5号门的密码是1234", "6号门的密码是1234", "add"),
    ("用户昨天跑了5公里", "用户昨天跑了8公里", "add"),
    ("用户住在北京", "用户在上海也有房子", "add"),
    ("他叫小明", "他叫小红", "add"),
    # Chinese: another value
    ("用户今年30岁", "用户今年31岁", "supersede"),
    ("用户30岁", "用户31岁", "supersede"),
    ("用户体重70公斤", "用户体重68公斤", "supersede"),
    ("用户有两只猫", "用户有三只猫", "supersede"),
    ("用户住在北京", "用户住在上海", "supersede"),
    ("用户的手机号是13800000001", "用户的手机号是13900000002", "supersede"),
    ("我月薪5000元", "我月薪8000元", "supersede"),
    ("用户就职于腾讯", "用户现在就职于阿里", "supersede"),
    ("用户名叫小安", "用户名叫大安", "supersede"),
    ("用户每天喝3杯咖啡", "用户每天喝2杯咖啡", "supersede"),
    # Chinese: the same
    ("用户喜欢简短的回答", "用户喜欢简短的回答。", "confirm"),
    ("用户住在里斯本", "用户住在里斯本！", "confirm"),
]

HELD_OUT = [
    # English: another thing
    ("Locker 14 belongs to user", "Locker 41 belongs to user", "add"),
    ("User's older brother lives in Oslo", "User's younger brother lives in Bergen", "add"),
    ("User's brother lives in Oslo", "User's brother lives in Bergen", "add"),
    ("Chapter 3 of user's thesis has 40 pages", "Chapter 4 of user's thesis has 25 pages", "add"),
    ("User's dog is called Rex", "User's dog is called Bella", "add"),
    ("User paid 30 euros for the taxi", "User paid 45 euros for the taxi", "add"),
    ("Release 1.2 has 3 known bugs", "Release 1.3 has 3 known bugs", "add"),
    ("The meeting room 101 has 8 seats", "The meeting room 102 has 12 seats", "add"),
    ("User lives in Bonn during summer", "User lives in Malaga during winter", "add"),
    ("User's left eye is at 1.5 dioptres", "User's right eye is at 2.5 dioptres", "add"),
    ("User visited Rome 2 times", "User visited Rome 3 times", "add"),
    ("User's account 77 has 200 euros", "User's account 99 has 900 euros", "add"),
    ("User's exam takes 2 hours", "User's exam takes 3 hours", "add"),
    # English: another value
    ("User has 1 child", "User has 2 children", "supersede"),
    ("User's budget is 500 euros", "User's budget is 800 euros", "supersede"),
    ("I am 41", "I am 42", "supersede"),
    ("I'm 41 years old", "I'm 42 years old", "supersede"),
    ("User sleeps about 6 hours a night", "User sleeps about 8 hours a night", "supersede"),
    ("User's rent is $900", "User's rent is $1100", "supersede"),
    ("User's wife works at Nokia", "User's wife works at Ericsson", "supersede"),
    ("User is based in Delhi", "User is based in Mumbai", "supersede"),
    ("The wifi password is 88231", "The wifi password is 99120", "supersede"),
    # English: the same
    ("User is fond of jazz", "User is fond of jazz!", "confirm"),
    ("User plays the violin in an orchestra", "In an orchestra, user plays the violin", "confirm"),
    # Chinese: another thing
    ("三楼的会议室可坐8人", "五楼的会议室可坐12人", "add"),
    ("用户的姐姐有2个孩子", "用户的姐姐有3个孩子", "add"),
    ("用户的狗叫旺财", "用户的狗叫来福", "add"),
    ("论文第三章有40页", "论文第四章有25页", "add"),
    ("1.2版有3个已知问题", "1.3版有3个已知问题", "add"),
    ("用户打车花了30元", "用户打车花了45元", "add"),
    ("用户夏天住在青岛", "用户冬天住在三亚", "add"),
    ("用户左眼近视150度", "用户右眼近视250度", "add"),
    ("用户去过罗马2次", "用户去过罗马3次", "add"),
    ("尾号77的卡有200元", "尾号99的卡有900元", "add"),
    ("周三晚上有瑜伽课", "周五晚上有瑜伽课", "add"),
    ("用户的车是2015年买的", "用户的车是2021年买的", "add"),
    ("用户住在杭州", "用户有时住在宁波", "add"),
    # Chinese: another value
    ("用户的预算是500元", "用户的预算是800元", "supersede"),
    ("我41岁", "我42岁", "supersede"),
    ("用户身高170厘米", "用户身高171厘米", "supersede"),
    ("用户每天睡6小时", "用户每天睡8小时", "supersede"),
    ("用户的房租是900元", "用户的房租是1100元", "supersede"),
    ("用户居住在德里", "用户居住在孟买", "supersede"),
    ("我任职于诺基亚", "我任职于爱立信", "supersede"),
    ("家里的无线密码是88231", "家里的无线密码是99120", "supersede"),
    ("用户管理9个人", "用户管理12个人", "supersede"),
    # Chinese: the same
    ("用户在乐团拉小提琴", "用户在乐团拉小提琴 ", "confirm"),
    ("用户喜欢爵士乐", "「用户喜欢爵士乐」", "confirm"),
]

FOUND_LATER = [
    ("User has 2 cats", "User has 3 dogs", "add"),
    ("用户有2只猫", "用户有3条狗", "add"),
    ("User drinks 2 coffees a day", "User drinks 3 teas a day", "add"),
    ("My server listens on port 8080", "My server listens on port 9090", "add"),
    ("用户在周一有2节课", "用户在周二有3节课", "add"),
    ("User's first dog weighed 9 kg", "User's second dog weighed 7 kg", "add"),
    ("用户有一个孩子", "用户有两个孩子", "supersede"),
]
"""Faults found once the halves were measured."""

KEPT_BOTH = {("User leads a team of 9", "User leads a team of 12")}
"""Another value, but one may lead several teams: what cannot be told stays beside the other."""
