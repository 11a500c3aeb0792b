/**
 * Limits of older models in tokens, including thinking. The API rejects requests for more. Other models support at
 * least 64,000.
 *
 * https://platform.claude.com/docs/en/about-claude/models/overview
 */
const limits: readonly (readonly [model: RegExp, tokens: number])[] = [
  [/claude-3-(haiku|sonnet|opus)|claude-2|claude-instant/u, 4_096],
  [/claude-3-5-/u, 8_192],
  [/claude-(opus-4|4-opus)(-[01])?([-@]2025\d{4}|$|-v\d|-latest)/u, 32_000],
];

/** The maximum number of output tokens of an older model; `Infinity` for any other. */
export const maxOutputTokens = (model: string): number =>
  limits.find(([pattern]) => pattern.test(model))?.[1] ?? Infinity;
