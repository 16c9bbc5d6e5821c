"""What masking must leave alone: ordinary keys, prose, code, configuration, logs, commands and addresses."""

from __future__ import annotations

import pytest

from toolgate.kernel.text.masking import Masker

LONG = "aB3dE5gH7jK9mN1pQ2sT4vW6yZ8" * 3
HEX = "0a1b2c3d4e5f6789" * 4

KEYS = """
authorization_model auth_model token_symbol secretary passenger cookie_jar authorization_decision
author authors author_id authored_by authority authorities authentic max_tokens tokens token_count tokenCount
token_type tokenizer tokenizers_parallelism TOKENIZERS_PARALLELISM prompt_tokens completion_tokens num_tokens
token_limit tokens_used total_tokens next_page_token nextPageToken pageToken NextToken continuation_token
keyboard primary_key foreign_key public_key publicKey ssh_public_key key keys key_id keyId access_key_id
sort_key cache_key partition_key passenger compass passed bypass passes pass_rate secretary password_policy
password_length password_min_length has_password password_required is_secret reset_password_url
password_changed_at auth_method auth_type auth_url auth_provider authType oauth_provider oauthProvider
session_id sessionId session secret_name secretName secret_arn token_url token_endpoint token_expires_at
token_expires_in cookie_policy cookie_consent cookie_domain passport passive passthrough monkey turkey hockey
keynote keyword keywords donkey key_name eos_token bos_token pad_token special_tokens tokens_per_second
cost_per_token author_email authorized authorized_keys unauthorized credentialed pinned pinning spinner opinion
shipping pin_count dsnless pemmican code status_code country_code zip_code error_code postal_code language_code
card cardinality discard cards connection connections conn_id phrase paraphrase signature sig_figs design assign
signal tokenized tokenization detokenize bearer_format password_file private_key_path api_key_id credential_type
max_token_length secret_version auth_required auth_enabled authentication jwt_issuer jwt_algorithm otp_enabled
passwordless first_token_ms mask_token routing_key project_key object_key s3_key row_key hot_key hotkeys
storage_key user_id request_id username user email path
""".split()

TEXTS = r"""
enter your password twice, then press OK
containing username and password entries (both
If no login/password was specified but netrc was requested,
self.hide_cookie2 = hide_cookie2
host db, password policy, user guide
Email, password confirmation, and name
user ann, password reset, host db
use apikey header
the api key rotation is due
api key v2 is out
primary key user_id1 and foreign key order_id2
unexpected token "foo" in json
authorization_model: rbac
tokenizer: cl100k_base
author: Jane Doe
password "max_tokens": 4096
Please reset your password: visit https://example.com/reset to continue.
the token expired
Your password must be at least 12 characters.
password must be at least 12 characters
Password: required
password: must contain a digit
Forgot password: click here
OperationalError: password authentication failed for user "x"
Secret Santa: draw names on Friday
The secret: use fresh basil.
He passed the keys to the author of the book.
Basic authentication is not recommended.
She is the bearer of good news.
A cookie recipe: flour, sugar, butter.
Access token has expired; please sign in again.
Bearer authentication uses tokens.
The API key is missing.
API key: missing
Invalid API key provided.
Authorization: required
auth: failed
Auth: OK
Token: expired
Unexpected token '<', "<!DOCTYPE "... is not valid JSON
SyntaxError: Unexpected token: punc (})
Unexpected token } in JSON at position 12
password incorrect
Enter passphrase for key '/home/u/.ssh/id_rsa':
Password:
[sudo] password for bob:
bob@host's password:
The password is incorrect.
The password is stored hashed.
password is too short
The token is 32 bytes long
Use a password manager: it is safer.
passwords: never share them
note: the secret is out
He said: "keep it secret".
Remember the pin: it is on the map.
My opinion: shipping is slow.
Meeting at 10:30, room 5: budget
token: name (foo)
Pass: 12, Fail: 3
PASS: test_token (0.01s)
FAIL: test_password
tests passed=12 failed=0
keys: 5
El token ha caducado.
Le mot de passe doit contenir 12 caractères.
Das Passwort ist falsch.
密码错误，请重试。
パスワードを入力してください。
Пароль неверный.
La contraseña es obligatoria.
O token expirou: faça login novamente.
비밀번호를 입력하세요
הסיסמה שגויה
The quick brown fox: jumps over the lazy dog.
Ratio 3:1, time 12:30:45, a=b
C'est la vie: rien à faire
50% off + 20% = 60%?
Deploy at 5pm; auth service v2.3.1 rolled out
LGTM! One nit: rename `token` to `cursor`.
key = value pairs are parsed
the key: value form
password = get_password()
token = os.environ["TOKEN"]
def login(user: str, password: str) -> Token:
password: str
token: str | None = None
api_key=settings.API_KEY
if token == expected_token:
self.token = token
const token = await getToken();
password?: string;
headers = {"Authorization": f"Bearer {token}"}
`Bearer ${token}`
Authorization: `Bearer ${token}`
password=$PASSWORD
PASSWORD=${PASSWORD}
password: ${{ secrets.DB_PASSWORD }}
token: '{{ vault_token }}'
password = None
token = ''
auth=auth,
password=password,
secret = Secret.from_name(name)
password = request.form["password"]
credentials: 'include'
credentials: "same-origin"
auth = HTTPBasicAuth(user, password)
token := lexer.Next()
let token = tokens[i];
for token in tokens:
tokens = text.split()
assert token is not None
return token
password = models.CharField(max_length=128)
password VARCHAR(255) NOT NULL,
token: Token
auth: AuthConfig
SELECT password FROM users WHERE id = 1
UPDATE t SET password = :password WHERE id = :id
WHERE token = ?
password = %s
print(f"token={token}")
log.info("token=%s", token)
if (password !== confirm) {
password => hash(password)
type Password = string
class TokenError(Exception):
import secrets
secrets: inherit
from auth import login
export default auth;
@auth.route('/login')
max_tokens=4096, temperature=0.7
"max_tokens": 4096
tokenizer = AutoTokenizer.from_pretrained('x')
key = lambda item: item[0]
sorted(d, key=len)
cookie = SimpleCookie()
cookies: dict[str, str] = {}
fn token(&self) -> &str {
pub password: String,
char *password = NULL;
std::string token;
String password = System.getenv("PW");
@token_required
<input type="password" name="password" placeholder="Password">
<label for="password">Password</label>
<token>
List<Token> tokens
password: SecretStr
x = a if pin else b
GPIO.setup(pin, OUT)
pin: 13
pinMode(LED_PIN, OUTPUT);
case 'token': return 1;
token::Type
auth::login()
raise AuthError("no token")
secretName: my-tls
auth: true
auth: none
auth_method: ldap
token_ttl: 3600
password_min_length = 12
"cookie": "0.5.0",
cookie@0.5.0:
PyJWT==2.8.0
python-jose[cryptography]>=3.3
integrity sha512-aB3/dE5+aB3/dE5+aB3/dE5+aB3/dE5+aB3/dE5+aB3/dE5+aB3/dE5+aB3/dE5+aB3/dE5+aB3/dE5+==
password-store: pass
key: value
author = "Bob <bob@example.com>"
authors = ["A"]
cookie_secure = true
session_timeout=3600
token_count=512 latency_ms=20
password: <password>
api_key: <YOUR_API_KEY>
PASSWORD=
password=*****
2024-05-01T10:00:00Z INFO auth: user=bob logged in
level=info msg="token refreshed" user=bob
Author: Bob <bob@example.com>
diff --git a/auth.py b/auth.py
index 0a1b2c3..4d5e6f7 100644
abc1234 auth: fix login redirect
fix(auth): handle expired tokens
feat(token): add refresh
create mode 100644 src/password.py
On branch feature/api-key-rotation
modified:   src/secrets.py
/etc/passwd: No such file or directory
-rw-r--r-- 1 bob bob 12 token.txt
550e8400-e29b-41d4-a716-446655440000
data:image/png;base64,iVBORw0KGgoAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA
Successfully installed tokenizers-0.15.0 sk-learn-0.0
kubectl get secrets -n prod
git config credential.helper store
npm ERR! auth required
HTTP/1.1 401 Unauthorized
WWW-Authenticate: Bearer realm="api"
Content-Type: application/json; charset=utf-8
docker login --password-stdin
use --token to pass a token
the --password flag is deprecated
docker build --secret id=npmrc,src=.npmrc .
ssh -p 2222 bob@host
mkdir -p /a/b
docker run -p 8080:80 -u 1000:1000 x
rsync -a src dst
mysql -u root -p
sk-learn
sk_live
hf_transfer
npm_config_registry
AIzawa
eyJ prose
pypi-server
ghp
ghp_short
AKIA
xoxb
glpat-
dapi
SG.x.y
version 1.2.3-beta.4+build.5
/usr/local/lib/python3.11/site-packages/some_very_long_package_name/module.py
a_very_long_identifier_name_with_many_words_in_it
SomeVeryLongCamelCaseIdentifierName
https://example.com/path?q=1&page=2
https://example.com:8080/@user
https://medium.com/@user/post
https://unpkg.com/react@18/umd/react.js
ssh://git@github.com/a/b.git
git@github.com:org/repo.git
https://user@host/x
postgresql://localhost:5432/db
mailto:bob@example.com
http://[::1]:8080/x
https://x.y/auth/login?next=/home
https://x/token
https://x/?tokens=5&author=bob
https://x/?page_token=abc1
redis://localhost:6379/0
https://${USER}:${TOKEN}@github.com
s3://bucket/key=value/part=1
http://localhost:3000/#/auth
{"a":1,  "key" : [1,2 ,3]}
{"token_count": 5, "author": "x"}
{"password": null}
{"error": "password too short"}
{"keys": ["a"], "n": 1e400}
if "-----BEGIN PRIVATE KEY-----" in text:
ssh-rsa AAAAB3NzaC1yc2E bob@host
İstanbul: güzel şehir, token yok
git log --author=bob
git log --pretty=format:%h
ls -la /etc/passwd
cat ~/.ssh/authorized_keys
ssh-keygen -t ed25519 -C bob@x.y
openssl genrsa -out key.pem 2048
kubectl describe secret db -n x
gh secret set TOKEN
gh secret list
vault kv get secret/data/app
docker secret ls
pass show email
bw unlock
op read op://vault/item/password
aws secretsmanager get-secret-value --secret-id prod/db
gcloud auth login
gcloud auth print-access-token
npm login
npm token list
passwd bob
sudo -u bob ls
htop -u bob
curl -u bob https://x
curl -s https://x | jq .token
jq '.token' f.json
export TOKEN=$(cat f)
TOKEN=$(gh auth token)
PASSWORD="$(pass show x)"
read -s PASSWORD
echo $TOKEN
echo "token: $TOKEN"
set -o pipefail
tar -czf a.tgz b
make test PYTEST_ARGS='-k token'
pytest -k 'auth and not token'
grep -n 'password' -r .
rg "api_key" src
sed -i 's/token/cursor/' f
find . -name '*.key'
chmod 600 id_rsa
psql -U postgres -d app
mysql -u root -p mydb < dump.sql
docker run -p 5432:5432 postgres
docker compose up -d
pip install pyjwt==2.8.0
pip install tokenizers
uvicorn app:app --port 8000
python -m http.server 8000
INFO: 127.0.0.1:5432 - "POST /auth/token HTTP/1.1" 200 OK
2024-01-01 12:00:00,123 DEBUG auth.py:45 token validated
[auth] session started id=abc123
auth.service: Succeeded.
sshd[123]: Failed password for root from 1.2.3.4 port 22 ssh2
sshd[1]: Accepted publickey for bob from 1.2.3.4 port 22 ssh2: RSA SHA256:abcDEF123abcDEF123abcDEF123abcDEF123
pam_unix(sudo:auth): authentication failure; logname= uid=1000
nginx: [emerg] cannot load certificate key "/etc/nginx/key.pem"
kernel: audit: type=1400 audit(1.2:3): apparmor="DENIED"
Jan  1 host systemd: Started Session 5 of user bob.
time="2024" level=info msg="auth ok" user=bob duration=5ms
{"level":"info","msg":"token refreshed","user":"bob"}
event=login result=success auth=mfa
auth=password user=bob
status=ok tokens=512 cost=0.01
tokens: 1234 (prompt: 1000, completion: 234)
Token usage: 1234
Tokens: 5
Key: Enter
Key: value
Primary key: id
Foreign key: user_id
Public key: ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI bob
Keys: a, b, c
Shortcut key: Ctrl+C
Password strength: weak
Password policy: 12 chars
Password hint: your dog
Passwords: 5 found
Auth: Basic
Auth type: Bearer
Credentials: see the wiki
Secrets: managed by Vault
Secret: none
Cookie: none
Cookies: enabled
PIN: required
pin: true
OTP: enabled
Bearer: none
Session: 12345
API key: required
API Key: see settings
api_key (string): the key
* `api_key` - your API key
- `token`: The token to use
`password`: string, required
| password | string | yes |
password (required)
password — the user's password
--password: the password to use
usage: x [--token TOKEN] [--password PASSWORD]
@param password the password
@param {string} token - The token
:param password: the password
:param token: API token
# TODO: rotate the token weekly
// password: plain text for now
/* token = identifier | number */
token = identifier | number ;
<token> ::= <word>
token: WORD
key: value # comment
raise ValueError('password must not be empty')
throw new Error(`Invalid token: ${token}`)
logger.error("Invalid token: %s", token)
console.log('token:', token)
print('password:', password)
print(f'{token=}')
assert response.json()['token']
assertIn('token', data)
token = data['token']
token = data.get('token')
password = input('Password: ')
password = getpass.getpass('Password: ')
const { password, ...rest } = user
const [password, setPassword] = useState('')
<input type='password' />
<PasswordInput value={password} onChange={setPassword} />
password: yup.string().required('Password is required')
password: z.string().min(8)
password: Joi.string().required(),
token: { type: String, required: true },
secret: process.env.SECRET,
secret: config.get('secret'),
apiKey: import.meta.env.VITE_API_KEY,
api_key = os.getenv('API_KEY')
api_key: str = Field(...)
api_key: Optional[str] = None
password: Mapped[str] = mapped_column(String(255))
t.string :password_digest
has_secure_password
validates :password, length: { minimum: 8 }
attr_accessor :password
private String password;
public void setPassword(String password) {
this.password = password;
user.setPassword(passwordEncoder.encode(password));
@Value("${db.password}")
spring.datasource.password=${DB_PASSWORD}
password: "{{ lookup('env', 'PW') }}"
password: !vault |
password: !secret db_password
password = var.db_password
password = data.aws_secretsmanager_secret_version.x.secret_string
token = local.token
secret_id = aws_secretsmanager_secret.x.id
secretKeyRef: {name: x, key: password}
existingSecret: my-secret
id-token: write
type: kubernetes.io/service-account-token
auth: {enabled: false}
token_ttl = "1h"
Use `Authorization: Bearer <token>`.
Authorization: Bearer <YOUR_TOKEN>
Authorization: Bearer $TOKEN
Authorization: Bearer ${TOKEN}
-H "Authorization: Bearer $TOKEN"
curl -H 'X-Api-Key: $API_KEY' x
https://x/?token=<token>
https://x/?token={token}
https://x/callback?code=
https://user:<password>@host
postgres://$USER:$PASSWORD@host
Salut, ton mot de passe est expiré.
Bitte Passwort ändern: Einstellungen öffnen.
Contraseña: obligatoria
请输入密码：
密码：不能为空
パスワード：必須
Пароль: обязательно
¿Olvidaste tu contraseña? Haz clic aquí.
La clave: paciencia.
The author's key insight: tokens are cheap.
Two things matter: keys and values.
We pass the token: it expires in 5 minutes.
Here's the deal: auth is broken.
Re: password reset
Subject: Your password has been reset
password reset: requested by bob
Password reset requested: 2024-01-01
token expires: 2024-01-01T00:00:00Z
secret sauce: love
Top secret: the cake is a lie
credentials: username and password
auth: add support for OAuth
auth, billing: refactor
chore(deps): bump jsonwebtoken from 8.5.1 to 9.0.0
Merge pull request #12 from x/fix-token
refactor: token -> cursor
key=value
a=1&b=2
x-token-count: 5
X-RateLimit-Remaining: 5
ETag: "abc123"
X-Request-Id: 550e8400-e29b-41d4-a716-446655440000
Access-Control-Allow-Credentials: true
Access-Control-Allow-Headers: Authorization, X-Api-Key
Vary: Cookie, Authorization
WWW-Authenticate: Basic realm="x"
Proxy-Authenticate: Basic
Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==
Idempotency-Key: 8e03978e
mysql> SELECT user, password FROM users;
ALTER TABLE users ADD COLUMN password TEXT;
CREATE INDEX token_idx ON t(token);
GRANT ALL ON x TO bob
INSERT INTO t (name, token) VALUES (?, ?)
passwordless: true
sha256=abc
md5: d41d8cd98f00b204e9800998ecf8427e
checksum: ab12ab12ab12ab12ab12ab12ab12ab12ab12ab12ab12ab12ab12ab12ab12ab12
etag="5d41402abc4b2a76b9719d911017c592"
commit: 0a1b2c3d
digest: sha256:ab12ab12ab12ab12ab12ab12ab12ab12ab12ab12ab12ab12ab12ab12ab12ab12
image: repo/auth@sha256:ab12ab12ab12ab12ab12ab12ab12ab12ab12ab12ab12ab12ab12ab12ab12ab12
uuid=550e8400-e29b-41d4-a716-446655440000
trace_id=4bf92f3577b34da6a3ce929d0e0e4736 span_id=00f067aa0ba902b7
AC0a1b0a1b0a1b0a1b0a1b0a1b0a1b0a1b
""".strip().splitlines()

VALUES: list[object] = [
    {"city": "Paris", "days": 3, "units": "metric"},
    {"password": None},
    {"password": ""},
    {"password": True},
    {"token": False},
    {"secrets": []},
    {"auth": {}},
    {"auth": {"enabled": True}},
    {"pass": 12, "fail": 3},
    {"pin": 13, "mode": "OUTPUT"},
    {"password": "${DB_PASSWORD}"},
    {"token": "{{ token }}"},
    {"api_key": "<your key>"},
    {"password": "***"},
    {"secret": "[REDACTED]"},
    {"dependencies": {"cookie": "0.5.0", "basic-auth": "~2.0.1", "jsonwebtoken": "^9.0.0", "csrf": "3.1.0"}},
    {"properties": {"password": {"type": "string", "description": "The password", "minLength": 8}}},
    {"required": ["password", "otp_value"]},
    {"fields": ["token", "x1"]},
    {"tags": ["auth", "login"]},
    ["auth", "login"],
    ["password", "email"],
    ["username", "password"],
    {"name": "color", "value": "red"},
    {"name": "LOG_LEVEL", "value": "debug"},
    {"key": "Enter", "value": "13"},
    {"a": [1, 2.5, None, True, "x", {"b": []}]},
    [],
    {},
    "",
    0,
    None,
    1.5,
    ["a", ["b", ("c",)]],
    {1: "a", None: "b"},
    {"/auth/login": "POST", "/api/token": "GET"},
    {"src/auth.py": 12, "token.py": "x y"},
    b"plain bytes \xff",
    {"x": b"ok"},
    ["git", "commit", "-m", "fix token parsing"],
    ["docker", "run", "-p", "8080:80", "nginx"],
    ["ssh", "-p", "2222", "host"],
    ["mkdir", "-p", "a/b"],
    ["docker", "run", "--user", "1000:1000", "x"],
    ["pip", "install", "--user", "x"],
    ["pytest", "-k", "token"],
    ["tar", "-xzf", "a.tgz"],
    ["docker", "login", "--password-stdin"],
    ["tool", "--token-file", "/run/t"],
    ["cp", "-a", "a", "b"],
    ["kubectl", "get", "secret", "my-secret"],
    ["grep", "-r", "password", "src"],
    ["--max-tokens", "512"],
    ["ls", "-la"],
    ["python", "-m", "toolgate", "--auth-type", "basic"],
    ["mysql", "-u", "root", "-p", "mydb"],
    ["sort", "-u", "a:b"],
    "valueFrom:\n  secretKeyRef:\n    name: db\n    key: password",
    "passwordPolicy:\n  minLength: 12",
    'js-tokens@^4.0.0:\n  version "4.0.0"',
    '    {file = "x.whl", hash = "sha256:' + HEX + '"},',
    "keys:\n  - a\n  - b",
    "[auth]\nenabled = true",
    "apiVersion: v1\nkind: Secret\nmetadata:\n  name: x",
    "TOKEN=\nX=1",
    "commit 0a1b2c3d4e5f67890a1b2c3d4e5f67890a1b2c3d",
    " src/auth/token.py | 12 ++++----",
    "sha256:" + HEX,
    "0a1b2c3d4e5f67890a1b2c3d4e5f67890a1b2c3d",
    "[1, 2,\n 3]",
    "-----BEGIN PUBLIC KEY-----\n" + LONG + "\n-----END PUBLIC KEY-----",
    "-----BEGIN CERTIFICATE-----\n" + LONG + "\n-----END CERTIFICATE-----",
    "lone \ud800 surrogate",
    {"GOOGLE_APPLICATION_CREDENTIALS": "/etc/gcp/key.json"},
    {"PWD": "/home/bob", "HOME": "/home/bob", "SSH_AUTH_SOCK": "/tmp/ssh-x/agent.1"},
    {"OLDPWD": "/"},
    {
        "usage": {
            "prompt_tokens": 12,
            "completion_tokens": 5,
            "total_tokens": 17,
            "completion_tokens_details": {"reasoning_tokens": 0},
        }
    },
    {"model": "x", "max_tokens": 100, "max_completion_tokens": 5, "stop_token": "x", "logit_bias": {}},
    {
        "max_input_tokens": 5,
        "maxOutputTokens": 1024,
        "max_token": 5,
        "budget_tokens": 100,
        "cache_read_input_tokens": 4,
    },
    {"tokenizer_config": {"bos_token": "<s>", "eos_token": "</s>"}},
    {"tokenizerName": "gpt2"},
    {"author": "Bob", "authored_date": "2024", "authority": "x.y"},
    {"keyboard": "us", "keymap": "x", "keyframes": [1]},
    {"primaryKey": "id", "foreignKey": "u"},
    {"passengers": [{"name": "x"}]},
    {"passed": True, "pass_count": 5, "passRate": 0.9},
    {"secretary": "Ann"},
    {"compass": "N"},
    {"session_id": "sess_12345", "sessionId": "abc-123"},
    {"next_cursor": "abc", "nextToken": "abc123", "page_token": "CAUQAA"},
    {"csrf_enabled": "yes"},
    {"accessibility": "x"},
    {"accessed_at": "2024"},
    {"cookie_banner": "shown"},
    {"oauth": "google"},
    {"auth_provider": "google", "authProvider": "okta", "auth_mode": "sso"},
    {"error": "invalid_token", "error_description": "The access token expired"},
    {"code": "AUTH_REQUIRED"},
    {"permission": "secrets:read"},
    {"scopes": ["token:read", "auth"]},
    {"grant_type": "password"},
    {"response_type": "token"},
    {"token_type": "Bearer", "expires_in": 3600},
    {"type": "password", "label": "Password"},
    {"name": "password", "type": "string", "required": True},
    {"name": "token", "in": "header", "schema": {"type": "string"}},
    {"title": "Reset your password", "body": "Click the link to reset your password."},
    {"subject": "Your password was changed"},
    {"columns": ["id", "password", "token"]},
    ["id", "password", "token"],
    ["password", "confirm_password"],
    ["token", "refresh_token"],
    ["auth", "users", "billing"],
    ["pin", "map"],
    "  --token TOKEN    API token",
    "  --password PASSWORD  the password",
    "  -p, --password <password>",
    "Options:\n  --api-key KEY  Your key",
    "    password (str): The password.",
    "    token: The token to verify.",
    "Args:\n    api_key: API key for the service.\n    secret: Secret used to sign.",
    "imagePullSecrets:\n  - name: regcred",
    "secrets:\n  - db_password",
    "env:\n  TOKEN: ${{ secrets.TOKEN }}",
    "with:\n  token: ${{ github.token }}",
    "permissions:\n  id-token: write",
    "tokens:\n  - a",
    "auth:\n  type: basic",
]

CASES: list[object] = [*({key: "plain-value 7"} for key in KEYS), *TEXTS, *VALUES]


@pytest.mark.parametrize("value", CASES, ids=map(str, range(len(CASES))))
def test_ordinary_data_comes_out_equal(value: object) -> None:
    assert Masker()(value) == value


def test_corpus_is_large_enough() -> None:
    assert len(CASES) >= 200


def test_ordinary_texts_come_out_equal_when_they_are_one_text() -> None:
    text = "\n".join(TEXTS)
    assert Masker().text(text) == text
