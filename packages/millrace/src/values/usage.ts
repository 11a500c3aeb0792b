/** Token counts as the provider reports them. `inputTokens` excludes tokens read from or written to its cache. */
export interface Usage {
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly cacheReadTokens: number;
  readonly cacheWriteTokens: number;
}

export const noUsage: Usage = {
  inputTokens: 0,
  outputTokens: 0,
  cacheReadTokens: 0,
  cacheWriteTokens: 0,
};

export const addUsage = (a: Usage, b: Usage): Usage => ({
  inputTokens: a.inputTokens + b.inputTokens,
  outputTokens: a.outputTokens + b.outputTokens,
  cacheReadTokens: a.cacheReadTokens + b.cacheReadTokens,
  cacheWriteTokens: a.cacheWriteTokens + b.cacheWriteTokens,
});

export const largerUsage = (a: Usage, b: Usage): Usage => ({
  inputTokens: Math.max(a.inputTokens, b.inputTokens),
  outputTokens: Math.max(a.outputTokens, b.outputTokens),
  cacheReadTokens: Math.max(a.cacheReadTokens, b.cacheReadTokens),
  cacheWriteTokens: Math.max(a.cacheWriteTokens, b.cacheWriteTokens),
});

/** Usage by phase: `reasoning`, `closing`, other phases that ask a model, and `acting` or `steps` for sub-agents. */
export type UsageByPhase = Readonly<Record<string, Usage>>;

export const addToPhase = (all: UsageByPhase, phase: string, usage: Usage): UsageByPhase => ({
  ...all,
  [phase]: addUsage(Object.hasOwn(all, phase) ? (all[phase] ?? noUsage) : noUsage, usage),
});

export const tokensIn = (usage: Usage): number =>
  usage.inputTokens + usage.outputTokens + usage.cacheReadTokens + usage.cacheWriteTokens;

/** The counts of a usage, which a model or a stored record may have wrong. */
export const countsIn = (given: Usage): { readonly usage: Usage; readonly isValid: boolean } => {
  const { inputTokens, outputTokens, cacheReadTokens, cacheWriteTokens } = given;
  const counts = [inputTokens, outputTokens, cacheReadTokens, cacheWriteTokens];
  if (counts.every(isCount)) return { usage: given, isValid: true };
  const usage = {
    inputTokens: countOf(inputTokens),
    outputTokens: countOf(outputTokens),
    cacheReadTokens: countOf(cacheReadTokens),
    cacheWriteTokens: countOf(cacheWriteTokens),
  };
  return { usage, isValid: false };
};

const isCount = (value: unknown): boolean => Number.isFinite(value) && Number(value) >= 0;

const countOf = (value: number): number => (isCount(value) ? value : 0);
