/**
 * Whether a path looks like that of a secret, such as keys, credentials and `.env`, in any directory. It only checks
 * names. Templates such as `.env.example` and public keys are not secret.
 */
export const looksSecret = (path: string): boolean => {
  const parts = path.toLowerCase().split(/[/\\]/u);
  const name = parts.at(-1) ?? '';
  if (parts.some((part) => secretDirectories.has(part))) return true;
  return (
    !harmless.test(name) && (secretNames.has(name) || secretForms.some((form) => form.test(name)))
  );
};

const secretDirectories: ReadonlySet<string> = new Set([
  '.git',
  '.ssh',
  '.aws',
  '.azure',
  '.gnupg',
  '.kube',
  '.docker',
  '.terraform',
]);

const harmless = /\.(?:example|sample|template|dist|pub)$/u;

const secretNames: ReadonlySet<string> = new Set([
  '.npmrc',
  '.yarnrc',
  '.yarnrc.yml',
  '.netrc',
  '_netrc',
  '.pypirc',
  '.pgpass',
  '.htpasswd',
  '.git-credentials',
  '.dockercfg',
  '.envrc',
  'credentials',
]);

const secretForms: readonly RegExp[] = [
  /^\.env(?:\..+)?$/u,
  /\.env$/u,
  /^id_(?:rsa|dsa|ecdsa|ed25519)/u,
  /\.(?:pem|key|p8|p12|pfx|jks|keystore|kdbx|ppk|asc|gpg|tfstate)$/u,
  /^(?:secrets?|credentials?)\.[a-z]+$/u,
  /^service[-_]?account.*\.json$/u,
];
