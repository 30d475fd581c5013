"""Pairs by which calibrations are measured: a fact, a question that it answers, a paraphrase of it, and a near miss
that differs in a number, a name, a negation, a thing or a relation. Every fact is of another topic, so that a question
has nothing to do with the other facts."""

ENGLISH = [
    ("User is allergic to peanuts.", "What food should I avoid?", "The user has a peanut allergy.", "User is allergic to cats."),
    ("User has a dog called Max.", "What is my dog called?", "The user's dog is named Max.", "User has a cat called Max."),
    ("User lives in Berlin.", "Which city do I live in?", "The user's home is in Berlin.", "User lives in Lisbon."),
    ("User's husband Paul is a nurse.", "What does my husband do for work?", "Paul, the user's husband, works as a nurse.", "User's brother Paul is a nurse."),
    ("User writes backend services in Rust.", "Which programming language do I work with?", "The user builds backend services using Rust.", "User writes backend services in Python."),
    ("User wants to hike in the Alps in July.", "What are my plans for the summer?", "The user plans a hike in the Alps this July.", "User wants to hike in the Alps in May."),
    ("User drinks coffee without sugar.", "How do I take my coffee?", "The user takes coffee with no sugar.", "User drinks coffee with sugar."),
    ("User plays tennis on Mondays.", "When do I do sports?", "On Mondays the user plays tennis.", "User plays tennis on Fridays."),
    ("User's daughter Emma is 7 years old.", "How old is my daughter?", "Emma, the user's daughter, is seven.", "User's daughter Emma is 9 years old."),
    ("User pays 1,200 euros of rent a month.", "How much is my rent?", "The user's monthly rent is 1,200 euros.", "User pays 1,500 euros of rent a month."),
    ("User does not eat meat.", "Can I have the beef stew?", "The user eats no meat.", "User does not eat fish."),
    ("User drives a blue Volvo.", "What car do I have?", "The user's car is a blue Volvo.", "User drives a red Volvo."),
    ("User's flight to Tokyo leaves on May 3rd.", "When do I fly to Japan?", "The user flies to Tokyo on May 3rd.", "User's flight to Tokyo leaves on May 13th."),
    ("User prefers short answers.", "How should you reply to me?", "The user likes answers to be brief.", "User prefers long answers."),
    ("User's manager is Anna Schmidt.", "Who is my boss?", "Anna Schmidt manages the user.", "User's manager is Anna Weber."),
    ("User studied physics at MIT.", "What did I study?", "The user has a physics degree from MIT.", "User studied chemistry at MIT."),
    ("User is learning to play the guitar.", "Which instrument am I learning?", "The user is taking up the guitar.", "User is learning to play the violin."),
    ("User takes a blood pressure pill every morning.", "Which medicine do I take?", "Each morning the user takes medication for blood pressure.", "User takes a sleeping pill every evening."),
]  # fmt: skip

CHINESE = [
    ("用户对花生过敏。", "我不能吃什么？", "用户有花生过敏症。", "用户对猫过敏。"),
    ("用户养了一只叫豆豆的狗。", "我的狗叫什么名字？", "用户的狗名叫豆豆。", "用户养了一只叫豆豆的猫。"),
    ("用户住在上海。", "我住在哪个城市？", "用户的家在上海。", "用户住在成都。"),
    ("用户的丈夫李强是护士。", "我丈夫做什么工作？", "李强是用户的丈夫，职业是护士。", "用户的哥哥李强是护士。"),
    ("用户用Rust写后端服务。", "我用什么编程语言？", "用户的后端服务是用Rust写的。", "用户用Python写后端服务。"),
    ("用户想七月去云南徒步。", "我夏天有什么打算？", "用户打算七月份到云南徒步旅行。", "用户想五月去云南徒步。"),
    ("用户喝咖啡不加糖。", "我的咖啡要怎么做？", "用户喝不加糖的咖啡。", "用户喝咖啡加糖。"),
    ("用户每周一打网球。", "我什么时候运动？", "用户星期一都会去打网球。", "用户每周五打网球。"),
    ("用户的女儿小雨今年七岁。", "我女儿多大了？", "用户的女儿叫小雨，今年7岁。", "用户的女儿小雨今年九岁。"),
    ("用户每月房租四千元。", "我的房租是多少？", "用户一个月付4000元房租。", "用户每月房租五千元。"),
    ("用户不吃肉。", "我能点红烧牛肉吗？", "用户从来不吃肉类。", "用户不吃鱼。"),
    ("用户开一辆蓝色的沃尔沃。", "我开什么车？", "用户的车是蓝色沃尔沃。", "用户开一辆红色的沃尔沃。"),
    ("用户去东京的航班是五月三日。", "我哪天飞日本？", "用户5月3日飞往东京。", "用户去东京的航班是五月十三日。"),
    ("用户喜欢简短的回答。", "你应该怎么回答我？", "用户希望回答简短一些。", "用户喜欢详细的回答。"),
    ("用户的上司是王芳。", "谁是我的领导？", "王芳是用户的上级。", "用户的上司是王丽。"),
    ("用户在清华大学学的是物理。", "我大学读的什么专业？", "用户是清华大学物理专业毕业的。", "用户在清华大学学的是化学。"),
    ("用户正在学吉他。", "我在学什么乐器？", "用户最近在学弹吉他。", "用户正在学小提琴。"),
    ("用户每天早上吃一片降压药。", "我在吃什么药？", "用户每天早晨都要服用一粒降血压的药。", "用户每天晚上吃一片安眠药。"),
]  # fmt: skip
