"""What pages say, in English and Korean. Every key exists in both; a test says so."""

TEXTS: dict[str, dict[str, str]] = {
    "en": {
        "languages": "Language",
        "skip": "Skip to the content",
        "log_out": "Log out",
        "log_in": "Log in",
        "api": "API",
        "welcome_title": "Coding labs, ready when you are",
        "welcome_body": "You are not logged in. Open the login link you were given, on this device. It works once.",
        "welcome_no_link": "No link?",
        "welcome_learner": "Ask your teacher for a new one. It takes them a few seconds.",
        "welcome_operator": "If you run this CodeHub, make one on the machine it runs on:",
        "home_hello": "Hello, {name}",
        "home_body": "You are logged in. Everything that can be done today is in the API and the command line.",
        "home_role": "Role",
        "home_device": "This device",
        "home_session": "Stays logged in while you use it",
        "home_next": "Read the API documentation",
        "home_people": "Add people and give them login links from the machine that runs CodeHub:",
        "role_admin": "Admin",
        "role_teacher": "Teacher",
        "role_learner": "Learner",
        "preview_title": "Your login link",
        "preview_body": "It logs in the device you open it on. It works once, so keep it to yourself.",
        "used_title": "This login link no longer works",
        "used_body": "It was used before, or it is too old. Nothing is wrong with your account or your files.",
        "used_next": "Ask whoever gave it to you for a new one.",
        "error_lost_title": "There is nothing here",
        "error_lost_body": "The address may be mistyped, or the page has moved.",
        "error_away_title": "Back in a moment",
        "error_away_body": "A part of CodeHub does not answer right now. This usually passes within seconds.",
        "error_broken_title": "Something went wrong on our side",
        "error_broken_body": "You did nothing wrong. If it happens again, tell whoever runs CodeHub the number below.",
        "error_refused_title": "This did not work",
        "error_refused_body": "Go to the start page and try again from there.",
        "error_number": "Request",
        "error_retry": "Try again",
        "error_home": "Go to the start page",
        "docs_title": "API",
        "docs_intro": "Everything CodeHub does, programs can do. Send an access token as a bearer token:",
        "docs_parameters": "Parameters",
        "docs_body": "Body",
        "docs_answers": "Answers",
        "docs_required": "required",
        "docs_machine": "For programs (OpenAPI)",
        "docs_shapes": "Shapes",
        "docs_health": "Health",
        "docs_workspaces": "Workspaces",
        "docs_people": "People",
        "docs_operations": "Operations",
    },
    "ko": {
        "languages": "언어",
        "skip": "본문으로 건너뛰기",
        "log_out": "로그아웃",
        "log_in": "로그인",
        "api": "API",
        "welcome_title": "언제든 바로 시작하는 코딩 실습실",
        "welcome_body": "로그인이 필요합니다. 받은 링크를 이 기기에서 열어 주세요. 링크는 한 번만 쓸 수 있습니다.",
        "welcome_no_link": "링크가 없나요?",
        "welcome_learner": "선생님께 새 링크를 부탁하세요. 몇 초면 만들 수 있습니다.",
        "welcome_operator": "이 CodeHub를 직접 운영한다면, CodeHub가 실행 중인 컴퓨터에서 새 링크를 만드세요.",
        "home_hello": "{name}님, 안녕하세요",
        "home_body": "로그인되었습니다. 지금은 모든 기능을 API와 명령줄에서 쓸 수 있습니다.",
        "home_role": "역할",
        "home_device": "이 기기",
        "home_session": "계속 사용하는 동안 로그인이 유지됩니다",
        "home_next": "API 문서 보기",
        "home_people": "사용자 추가와 로그인 링크 만들기는 CodeHub가 실행 중인 컴퓨터에서 할 수 있습니다.",
        "role_admin": "관리자",
        "role_teacher": "선생님",
        "role_learner": "학생",
        "preview_title": "로그인 링크",
        "preview_body": "링크를 연 기기에서 로그인됩니다. 한 번만 쓸 수 있으니 다른 사람에게 보내지 마세요.",
        "used_title": "이 로그인 링크는 더 이상 쓸 수 없습니다",
        "used_body": "이미 사용했거나 유효 기간이 지난 링크입니다. 계정과 파일에는 아무 문제가 없습니다.",
        "used_next": "링크를 보내 준 사람에게 새 링크를 부탁하세요.",
        "error_lost_title": "페이지를 찾을 수 없습니다",
        "error_lost_body": "주소를 잘못 입력했거나 페이지가 옮겨졌을 수 있습니다.",
        "error_away_title": "잠시 후 다시 시도해 주세요",
        "error_away_body": "CodeHub의 일부가 지금 응답하지 않습니다. 보통 몇 초 안에 돌아옵니다.",
        "error_broken_title": "CodeHub에 문제가 생겼습니다",
        "error_broken_body": "잘못하신 것은 없습니다. 같은 문제가 또 생기면 아래 번호를 운영자에게 알려 주세요.",
        "error_refused_title": "요청을 처리하지 못했습니다",
        "error_refused_body": "첫 화면으로 돌아가 다시 시도해 주세요.",
        "error_number": "요청 번호",
        "error_retry": "다시 시도",
        "error_home": "첫 화면으로",
        "docs_title": "API",
        "docs_intro": "CodeHub의 모든 기능은 프로그램에서도 쓸 수 있습니다. 액세스 토큰을 Bearer 토큰으로 보내세요.",
        "docs_parameters": "매개변수",
        "docs_body": "요청 본문",
        "docs_answers": "응답",
        "docs_required": "필수",
        "docs_machine": "프로그램용 명세(OpenAPI)",
        "docs_shapes": "데이터 형식",
        "docs_health": "상태 확인",
        "docs_workspaces": "워크스페이스",
        "docs_people": "사용자",
        "docs_operations": "운영",
    },
}
LANGUAGES = {"en": "English", "ko": "한국어"}  # each in its own words
DEFAULT = "en"


def choose(asked: str | None, remembered: str | None, accept_language: str) -> str:
    """The language asked for now or before, else the one of ours that the browser likes best."""
    for candidate in (asked, remembered, *_preferred(accept_language)):
        if candidate in TEXTS:
            return candidate
    return DEFAULT


def _preferred(accept_language: str) -> list[str]:
    """`ko-KR,ko;q=0.9,en;q=0.8` by weight; a language without one weighs most, one of weight 0 is not wanted."""
    weighed = []
    for part in accept_language.split(","):
        tag, _, parameter = part.partition(";")
        weighed.append((_weight(parameter), tag.strip().lower().partition("-")[0]))
    return [language for weight, language in sorted(weighed, key=lambda pair: -pair[0]) if weight > 0]


def _weight(parameter: str) -> float:
    name, _, value = parameter.strip().partition("=")
    try:
        return float(value) if name.strip() == "q" else 1.0
    except ValueError:
        return 0.0
