"""What the people in the pictures are called and have written: a school in Korea, and one that speaks English."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Words:
    language: str
    teacher: tuple[str, str]  # a login name, and what people call them
    learner: tuple[str, str]
    newcomer: tuple[str, str]  # a teacher who has nothing yet
    longest: tuple[str, str]  # and one whose names are all as long as they may be
    class_title: str
    learners: tuple[str, ...]
    course_title: str
    course_about: str
    sessions: tuple[str, ...]
    reading: str
    question: str
    choices: tuple[str, str]
    feedback: str
    done: str
    long_title: str
    workspaces: tuple[str, str, str, str, str]  # runs, asleep, stored away, not started, went wrong
    slow: str
    hands: tuple[str, str]
    workshop: str
    roster: str  # a list with a line that is wrong
    shipped: str  # the title of the Python course that comes with the product


ENGLISH = Words(
    language="en",
    teacher=("anna", "Anna Weber"),
    learner=("maya", "Maya Lindqvist"),
    newcomer=("noor", "Noor Haddad"),
    longest=(
        "a-name-as-long-as-anybody-will-ever-type",
        "Maximiliana Featherstonehaugh-Schwarzenberger of the Evening School",
    ),
    class_title="Python, Monday group",
    learners=(
        "Adam Novak",
        "Bea Torres",
        "Chen Wei",
        "Dina Haddad",
        "Elias Berg",
        "Fatou Diop",
        "Georg Maier",
        "Hana Sato",
        "Ivo Petrov",
        "Julia Costa",
        "Karim Aziz",
        "Lena Fischer",
        "Marco Rossi",
    ),
    course_title="A grade book in six evenings",
    course_about="From the first line to a small program that people use.",
    sessions=("Say hello", "Numbers and text", "Making choices", "Repeating things", "Lists", "The grade book"),
    reading="# {title}\n\nRead slowly, and type along. A program is a list of small steps, done from top to bottom."
    '\n\n```python\nfor name in ["Ada", "Grace"]:\n    print("Hello,", name)\n```',
    question="How many lines does the example print?",
    choices=("One", "Two"),
    feedback="Each name of the list gets a line of its own.",
    done="You can read a loop now. The next evening builds on it.",
    long_title="An introduction to programming for people who come in the evening and have never done it before",
    workspaces=("Data analysis", "Evening project", "Last year's robotics", "Web server", "Chatbot"),
    slow="Image recognition",
    hands=("My loop never ends, and I do not know why.", "Which file do I have to change?"),
    workshop="robot-workshop",
    roster="name,id\nNora Lund,2401\nOscar Blanc,2402\n,2403\n",
    shipped="Python for beginners",
)
KOREAN = Words(
    language="ko",
    teacher=("kimsj", "김수진"),
    learner=("mina", "이민아"),
    newcomer=("haneul", "정하늘"),
    longest=(
        "ireumi-aju-gin-seonsaengnim-ui-sayongja-ireum",
        "이름이아주아주길어서한줄에들어가지않는선생님 김수한무거북이와두루미",
    ),
    class_title="파이썬 월요반",
    learners=(
        "강지훈", "김서연", "박도윤", "배하늘", "서예린", "송민재", "안유진", "오태양",
        "윤가온", "이준호", "정다은", "최시우", "한소율",
    ),
    course_title="여섯 번에 만드는 성적표 프로그램",
    course_about="첫 줄부터 시작해 실제로 쓰는 작은 프로그램까지 만들어 봅니다.",
    sessions=("인사하기", "숫자와 글자", "조건에 따라 고르기", "반복하기", "목록 다루기", "성적표 완성하기"),
    reading="# {title}\n\n천천히 읽으면서 직접 따라 입력해 보세요. "
    "프로그램은 위에서 아래로 하나씩 실행되는 작은 단계들의 모음입니다."
    '\n\n```python\nfor name in ["지훈", "서연"]:\n    print("안녕,", name)\n```',
    question="위 예제는 몇 줄을 출력할까요?",
    choices=("한 줄", "두 줄"),
    feedback="목록에 있는 이름마다 한 줄씩 출력됩니다.",
    done="이제 반복문을 읽을 수 있습니다. 다음 시간에는 여기서 이어서 합니다.",
    long_title="퇴근하고 저녁에 모여 한 번도 배워 본 적 없는 사람끼리 천천히 함께 시작하는 프로그래밍 첫걸음",
    workspaces=("데이터 분석 기초", "저녁 프로젝트", "작년 로봇 수업", "웹 서버 실습", "챗봇"),
    slow="이미지 인식",
    hands=("반복문이 끝나지 않는데 이유를 모르겠어요.", "어느 파일을 고쳐야 하나요?"),
    workshop="robot-class",
    roster="이름,학번\n임나라,2401\n조은별,2402\n,2403\n",
    shipped="처음 배우는 파이썬",
)  # fmt: skip
WORDS = {"en": ENGLISH, "ko": KOREAN}


def course(words: Words) -> dict[str, Any]:
    """A teacher's own; its answers are `RIGHT`."""
    sessions = [
        {"key": f"s{n}", "title": title, "day": 1 + 2 * (n - 1), "blueprint": lesson(words, title)}
        for n, title in enumerate(words.sessions, 1)
    ]
    return {
        "title": words.course_title,
        "description": words.course_about,
        "language": words.language,
        "sessions": sessions,
    }


RIGHT = {"answers": {"lines": "b"}}
WRONG = {"answers": {"lines": "a"}}


def lesson(words: Words, title: str) -> dict[str, Any]:
    one, two = words.choices
    return {
        "steps": ["LEARN", "CHECK", "COMPLETE"],
        "learningContent": [words.reading.format(title=title)],
        "checkQuestions": [
            {
                "id": "lines",
                "kind": "single",
                "prompt": words.question,
                "choices": [{"id": "a", "text": one}, {"id": "b", "text": two}],
                "answer": "b",
                "feedback": {"a": words.feedback},
            }
        ],
        "encouragement": words.done,
    }
