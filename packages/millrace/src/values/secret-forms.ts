/**
 * Forms of secrets that are recognized without their context: keys and tokens as services issue them, private keys, and passwords in
 * URLs. A match is the secret alone. Ordinary words do not match. Each takes linear time, and has the flag `g`.
 */
export const secretForms: readonly RegExp[] = [
  // With a digit, or with a word of letters that is too long for one: `sk-learn-is-a-library` is no key.
  /\b(?:sk|pk|rk|xai|gsk|hf|r8|pplx|nvapi|tvly|fw|glpat|dop_v1|npm)[-_](?:(?=[\w-]{0,99}\d)[\w-]{12,}|(?:[a-z]{2,8}[-_]){0,2}[A-Za-z]{16,})/g,
  /\bkey[-_](?=[A-Za-z]{0,99}\d)[A-Za-z\d]{16,}/g,
  /\b(?:whsec|lsv2)_[\w+/-]{16,}=*/g,
  /\bdapi[\da-f]{32}\b/g,
  /\bya29\.[\w.-]{16,}/g,
  /\bSG\.[\w-]{16,}\.[\w-]{16,}/g,
  /\bAIza[\w-]{30,}/g,
  /\b(?:AKIA|ASIA)[A-Z\d]{16}\b/g,
  /\b(?:gh[oprsu]|github_pat)_\w{20,}/g,
  /\b(?:xox[abeoprs]|xapp-\d)-[\w-]{10,}/g,
  // JSON Web Tokens. Encrypted ones have five parts, and the second may be empty.
  /\beyJ[\w-]{8,1000}\.(?:[\w-]{8,})?\.[\w-]+(?:\.[\w-]+){0,2}/g,
  /(?<=\b(?:Bearer|Basic)\s{1,4})(?=[\w.~+/-]{0,999}\d)[\w.~+/-]{12,}=*/gi,
  /(?<=\bBearer\s{1,4})[\w.~+/-]{16,}=*/gi,
  /(?<=api[-_]?key=)(?=[\w.~+/-]{0,99}\d)[\w.~+/-]{16,}=*/gi,
  /(?<=\bX-Amz-(?:Signature|Security-Token)=)[\w%+/=-]{16,}/gi,
  // Without its end, as in a preview, only lines of base64 belong to it.
  /-----BEGIN [A-Z ]{0,40}PRIVATE KEY(?: BLOCK)?-----(?:(?:(?!-----)[^]){1,20000}-----END [A-Z ]{0,40}PRIVATE KEY(?: BLOCK)?-----|(?:(?:\s|\\[nr]){0,4}[\w+/=]{16,})*)/g,
  /(?<=:\/\/[^\s/:@]{0,200}:)[^\s/@"]{1,200}(?:@[^\s/@"',?#]{1,200}){0,9}(?=@)/g,
];

const name =
  '(?:(?:api|access|secret|private|signing|encryption|master|ssh|auth|account|service|storage|admin)[-_ ]?key|authorization|secret|passw(?:or)?d|passphrase|token)';
const scheme = String.raw`(?:(?:Bearer|Basic|Token)\s{1,4})?`;
const secretAfter = (before: string, value: string): RegExp =>
  new RegExp(
    String.raw`(?<=${before}${scheme})(?!(?:Bearer|Basic|Token|true|false|null|undefined)\b|[$[{])${value}`,
    'gi',
  );

/**
 * Values whose name is that of a secret, such as `password=…` and a header `authorization`, and parameters of URLs. Only for texts
 * in which a word too many may be hidden, such as errors. A match is the value alone, has at least 4 characters, and is no `$NAME`.
 */
export const namedSecrets: readonly RegExp[] = [
  // A quoted value ends at its own quote, which is escaped in JSON that is a string of JSON.
  ...[String.raw`\\"`, '"', "'"].map((quote) =>
    secretAfter(
      String.raw`${name}(?:\\?["'])?\s{0,4}[:=]\s{0,4}(?<!\\)${quote}`,
      String.raw`(?:(?!${quote})[^\n\\]|(?!${quote})\\.){4,}`,
    ),
  ),
  secretAfter(`${name}=`, String.raw`[^\s"'\\,;&)\]}]{4,}`),
  // As in a header. Prose has words after a colon: "Unexpected token: function".
  secretAfter(
    String.raw`${name}(?:\s{1,4}=|\s{0,4}:)\s{0,4}`,
    String.raw`(?=[^\s"'\\,;&)\]}]{0,999}\d)[^\s"'\\,;&)\]}]{4,}`,
  ),
  /(?<=\b(?:Bearer|Basic)\s{1,4})(?![a-z]+\b)[\w.~+/-]{8,}=*/gi,
  /(?<=[?&](?:key|sig|signature)=)[^\s"'&#]{6,}/gi,
];

/** Replaces secrets in an error, or in another text that people read and copy: those of a known form, and those with a name. */
export const withoutSecrets = (text: string, instead = '[redacted]'): string =>
  [...secretForms, ...namedSecrets].reduce(
    (clean, form) => clean.replaceAll(form, () => instead),
    text,
  );
