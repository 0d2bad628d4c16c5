# 동료 미나의 역할을 합니다. 미나도 금요일 줄을 고쳐서 여러분보다 먼저 푸시합니다.
#   sh ~/git-04/mina.sh      커밋한 다음, 아직 푸시하기 전에 실행합니다.
set -eu
cd "$(dirname "$0")"

if [ ! -e server.git ]; then
  echo "아직 서버가 없습니다. 먼저: sh ~/git-04/setup.sh"
  exit 1
fi
if git -C server.git rev-parse -q --verify refs/practice/mina >/dev/null; then
  echo "미나는 이미 푸시했습니다. 여러분의 푸시를 계속하세요."
  exit 0
fi
if [ ! -e mine/.git ]; then
  echo "미나가 기다리고 있습니다. 먼저 서버를 ~/git-04/mine으로 복제하세요."
  exit 1
fi
case "$(git -C server.git cat-file blob main:lunch.txt)" in
  *김치*)
    echo "이미 푸시해서 미나와 부딪칠 것이 없습니다. 다시 시작하세요: sh ~/git-04/setup.sh again"
    echo "그다음 복제하고, 줄을 고치고, 커밋한 뒤, 푸시하기 전에 이 스크립트를 실행하세요."
    exit 1
    ;;
esac
case "$(git -C mine cat-file blob HEAD:lunch.txt 2>/dev/null || true)" in
  *"국수와 김치"*) ;;
  *)
    echo "미나가 기다리고 있습니다. 먼저 ~/git-04/mine/lunch.txt의 줄을 '금요일: 국수와 김치'로 고치고 커밋하세요."
    exit 1
    ;;
esac

export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_NOSYSTEM=1
export GIT_AUTHOR_NAME=미나 GIT_AUTHOR_EMAIL=mina@example.com
export GIT_COMMITTER_NAME=미나 GIT_COMMITTER_EMAIL=mina@example.com
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
git clone -q --branch main "$PWD/server.git" "$work/mina"
printf '월요일: 비빔밥\n화요일: 카레\n금요일: 비빔국수\n' > "$work/mina/lunch.txt"
git -C "$work/mina" add lunch.txt
git -C "$work/mina" commit -q -m "국수를 비빔국수로"
git -C "$work/mina" push -q origin main
# 미나가 무엇을 푸시했는지 검사할 때 쓰려고 기억해 둡니다.
git -C server.git update-ref refs/practice/mina main

echo "미나가 금요일 줄을 '비빔국수'로 고쳐서 푸시했습니다. 이제 여러분이 푸시해 보세요."
