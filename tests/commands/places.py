"""Files and addresses, ordinary and hostile, for the shipped profiles. Lists to add to, never to trim."""

from __future__ import annotations

READABLE = """
README.md
./README.md
src/main.py
src/../README.md
.env.example
.github/workflows/ci.yml
.gitignore
.git/HEAD
docs/a b.md
~
$HOME
..data
%2e%2e
link-in
package-lock.json
new/file.txt
src/environment.py
tests/test_keys.py
""".split("\n")[1:-1]

UNREADABLE = """
..
../secret
/etc/passwd
/etc/shadow
/proc/self/environ
/dev/zero
src/../../secret
.env
./.env
.ENV
.env.local
sub/.env
.ssh/id_rsa
id_rsa
ID_ED25519
server.pem
private.key
.aws/credentials
.netrc
.npmrc
link-out
link-out-absolute
link-env
link-dir/secret
hard-env
""".split("\n")[1:-1]

UNWRITABLE = """
.git/config
.git/hooks/pre-commit
.GIT/HEAD
toolgate.yaml
toolgate.commands.yaml
toolgate.db
.bashrc
""".split("\n")[1:-1]

FETCHABLE = """
https://docs.python.org/3/library/os.html
https://github.com/python/cpython/blob/main/README.rst
https://raw.githubusercontent.com/a/b/main/README.md
https://requests.readthedocs.io/en/latest/
https://developer.mozilla.org/en-US/docs/Web
https://stackoverflow.com/questions/1?q=a%20b#c
http://docs.python.org/
https://en.wikipedia.org/wiki/Ä
""".split("\n")[1:-1]

ASKED_URLS = ["https://example.com/", "https://blog.example.org:443/post?id=1", "https://bücher.example/"]

UNFETCHABLE = """
http://127.0.0.1/
http://localhost.localdomain:8080/
http://[::1]/
http://0.0.0.0/
http://10.0.0.1/
http://192.168.1.1/
http://172.16.0.1/
http://169.254.169.254/latest/meta-data/
http://[fd00:ec2::254]/
http://[::ffff:127.0.0.1]/
http://[64:ff9b::7f00:1]/
http://[2002:7f00:1::]/
http://2130706433/
http://0x7f.1/
http://0177.0.0.1/
http://127.1/
http://①②⑦.⓪.⓪.①/
https://user:pw@github.com/
https://github.com@evil.example/
https://github.com:22/
https://github.com:8443/
ftp://github.com/
file:///etc/passwd
gopher://github.com/
data:text/html,x
//github.com/
github.com
https://
https://github.com\\@evil.example/
https://git hub.com/
javascript:alert(1)
""".split("\n")[1:-1]
