/** One tool use of an answer. Its arguments are the deltas of a text, or that text. */
export interface AnsweredTool {
  readonly id?: string;
  readonly name?: string;
  readonly arguments: string | readonly string[];
}

/** Tokens of an answer, as all vendors count them in some way. */
export interface AnsweredUsage {
  /** All tokens of the prompt, cached ones among them. */
  readonly input: number;
  readonly cached: number;
  readonly output: number;
}

/** Why an answer ends. */
export type AnsweredFinish = 'stop' | 'toolCalls' | 'length' | 'filtered' | 'refusal' | 'pause';

/**
 * What a model answers, on whatever wire. Texts are given as deltas, or whole: then they are cut into some. All
 * fields may be absent; the finish is then `toolCalls` where there are such, else `stop`.
 */
export interface Answer {
  readonly thinking?: string | readonly string[];
  readonly text?: string | readonly string[];
  readonly refusal?: string | readonly string[];
  readonly toolCalls?: readonly AnsweredTool[];
  readonly usage?: AnsweredUsage;
  readonly finish?: AnsweredFinish;
  readonly model?: string;
}

/** An answer in which nothing is left open. */
export interface WholeAnswer {
  readonly thinking: readonly string[];
  readonly text: readonly string[];
  readonly refusal: readonly string[];
  readonly toolCalls: readonly WholeTool[];
  readonly usage: AnsweredUsage;
  readonly finish: AnsweredFinish;
  readonly model: string;
}

/** A tool use in which nothing is left open. */
export interface WholeTool {
  readonly id: string;
  readonly name: string;
  readonly arguments: readonly string[];
}

/** Fills in what an answer leaves open. */
export const wholeAnswer = (answer: Answer, prefix: string, model: string): WholeAnswer => {
  const { toolCalls = [], usage = { input: 21, cached: 0, output: 7 } } = answer;
  return {
    thinking: deltasOf(answer.thinking),
    text: deltasOf(answer.text),
    refusal: deltasOf(answer.refusal),
    toolCalls: toolCalls.map((call, index) => ({
      id: call.id ?? `${prefix}${index + 1}`,
      name: call.name ?? 'weather',
      arguments: deltasOf(call.arguments),
    })),
    usage,
    finish: answer.finish ?? finishOf(answer),
    model: answer.model ?? model,
  };
};

const finishOf = ({ toolCalls = [], refusal }: Answer): AnsweredFinish => {
  if (refusal !== undefined) return 'refusal';
  return toolCalls.length > 0 ? 'toolCalls' : 'stop';
};

/** Models speak in tokens: words and pieces of words. */
const deltasOf = (text: string | readonly string[] = []): readonly string[] =>
  typeof text === 'string' ? (text.match(/[^]{1,5}/gu) ?? []) : text;
