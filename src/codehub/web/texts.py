"""What pages say, in English and Korean. Every key exists in both; a test says so."""

TEXTS: dict[str, dict[str, str]] = {
    "en": {
        "language": "English",
        "skip": "Skip to the content",
        "log_out": "Log out",
        "api": "API",
        "welcome_title": "Coding labs, ready when you are",
        "welcome_body": "You are not logged in. Open the login link you were given: it works once, on this device.",
        "welcome_no_link": "No link?",
        "welcome_learner": "Ask your teacher for a new one. It takes them a few seconds.",
        "welcome_operator": "If you run this CodeHub, make one on the machine it runs on:",
        "home_hello": "Hello, {name}",
        "home_body": "You are logged in. Everything that can be done today is in the API and the command line.",
        "home_now": "Now",
        "home_role": "Role",
        "home_session": "This device stays logged in while you use it.",
        "home_next": "Read the API documentation",
        "home_people": "Add people and give them login links from the machine that runs CodeHub:",
        "role_admin": "Admin",
        "role_teacher": "Teacher",
        "role_learner": "Learner",
        "used_title": "This login link no longer works",
        "used_body": "It was used before, or it is too old. Nothing is wrong with your account or your files.",
        "used_next": "Ask whoever gave it to you for a new one.",
        "docs_title": "API",
        "docs_intro": "Everything CodeHub does, programs can do. Send an access token as a bearer token:",
        "docs_parameters": "Parameters",
        "docs_body": "Body",
        "docs_answers": "Answers",
        "docs_required": "required",
        "docs_machine": "The same for machines",
    },
    "ko": {
        "language": "한국어",
        "skip": "본문으로 건너뛰기",
        "log_out": "로그아웃",
        "api": "API",
        "welcome_title": "언제든 바로 시작하는 코딩 실습실",
        "welcome_body": "로그인되어 있지 않습니다. 받은 로그인 링크를 열어 주세요. 링크는 이 기기에서 한 번만 쓸 수 있습니다.",
        "welcome_no_link": "링크가 없나요?",
        "welcome_learner": "선생님께 새 링크를 요청하세요. 금방 만들 수 있습니다.",
        "welcome_operator": "이 CodeHub를 직접 운영하고 있다면, 실행 중인 컴퓨터에서 링크를 만드세요.",
        "home_hello": "{name}님, 안녕하세요",
        "home_body": "로그인되었습니다. 지금 할 수 있는 모든 일은 API와 명령줄에서 할 수 있습니다.",
        "home_now": "현재 상태",
        "home_role": "역할",
        "home_session": "계속 사용하는 동안 이 기기의 로그인이 유지됩니다.",
        "home_next": "API 문서 보기",
        "home_people": "CodeHub가 실행 중인 컴퓨터에서 사용자를 추가하고 로그인 링크를 만들 수 있습니다.",
        "role_admin": "관리자",
        "role_teacher": "교사",
        "role_learner": "학습자",
        "used_title": "더 이상 쓸 수 없는 로그인 링크입니다",
        "used_body": "이미 사용했거나 기한이 지났습니다. 계정과 파일에는 아무 문제가 없습니다.",
        "used_next": "링크를 준 사람에게 새 링크를 요청하세요.",
        "docs_title": "API",
        "docs_intro": "CodeHub의 모든 기능은 프로그램에서도 쓸 수 있습니다. 액세스 토큰을 Bearer 토큰으로 보내세요.",
        "docs_parameters": "매개변수",
        "docs_body": "요청 본문",
        "docs_answers": "응답",
        "docs_required": "필수",
        "docs_machine": "기계가 읽는 형식",
    },
}
DEFAULT = "en"


def choose(wanted: str | None, accept_language: str) -> str:
    """The language asked for, else the browser's first that we speak."""
    ranges = [part.split(";")[0].strip().lower()[:2] for part in accept_language.split(",")]
    for candidate in [wanted or "", *ranges]:
        if candidate in TEXTS:
            return candidate
    return DEFAULT
