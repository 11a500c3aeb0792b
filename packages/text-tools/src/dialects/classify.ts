import type { ModelChunk, ModelReport } from 'millrace';
import { parsedJson, toolInput } from 'millrace/values';
import type { Dialect, DialectPrompts, PromptNeeds } from './dialects.js';
import { actionInText, type Fault, type ParseResult } from './parse-result.js';
import type { ToolTable } from './read-entry.js';

export interface ClassifyContext extends FeedbackContext {
  readonly dialect: Pick<Dialect, 'strict' | 'maxUses'>;
  readonly thought: string;
  readonly nativeUses: number;
  readonly mayRetract: boolean;
}

type Malformed = Omit<Extract<ModelChunk, { readonly type: 'malformed' }>, 'type'>;

export interface Classification {
  readonly chunks: readonly ModelChunk[];
  readonly reports: readonly ModelReport[];
}

export const refusals = {
  none: 'Not executed: no tool may be used now.',
  one: 'Not executed: one action per step. Call it again in your next step if you still need it.',
} as const;

export const classify = (result: ParseResult, needs: ClassifyContext): Classification => {
  const { calls, fault, conflict } = result;
  const remaining = wordsInstead(result, needs);
  const answer = (result.answer ?? []).join('').trim();
  const malformed = (what: string, tool?: string, isAnswer = false): Classification => ({
    chunks: [...remaining, { type: 'malformed', ...feedbackOf(what, tool, needs), isAnswer }],
    reports: [],
  });
  const reports: readonly ModelReport[] = result.repairs.map((repair) => ({
    type: 'repaired',
    ...repair,
  }));

  if (answer !== '' && conflict === undefined && forbidsTools(needs))
    return { chunks: [], reports };
  if (calls.length > 0 && answer !== '') {
    return malformed(
      'It has both an action and a final answer. Write one of them.',
      calls[0]?.name,
    );
  }
  if (answer !== '' && forcesTool(needs))
    return malformed('It contains an answer, but a tool must be called.');
  if (conflict !== undefined) return malformed(conflict);
  if (fault !== undefined && (answer === '' || isAction(fault))) {
    return malformed(fault.what, fault.tool, remaining.length > 0);
  }
  if (calls.length > 0) {
    return {
      chunks: calls.map(({ name, input }, index) => ({
        type: 'toolCall',
        name,
        ...toolInput(input),
        ...refusalOf(name, index, needs),
      })),
      reports: [...reports, ...skipped(result)],
    };
  }
  if (result.answer !== undefined) return { chunks: remaining, reports };
  if (result.prose.length > 0) {
    if (result.mentionedTool !== undefined && !forbidsTools(needs)) {
      return malformed(actionInText, result.mentionedTool);
    }
    return isStrict(needs) && !isOutput(result, needs)
      ? malformed(
          'It is neither an action nor a final answer in the requested form.',
          undefined,
          true,
        )
      : { chunks: remaining, reports };
  }
  // Without tools, there is nothing to continue with.
  if (forbidsTools(needs) && needs.thought !== '') {
    return { chunks: [{ type: 'text', text: needs.thought }], reports };
  }
  return result.hasThought && needs.nativeUses === 0
    ? { chunks: [{ type: 'malformed', ...goOn(needs) }], reports }
    : { chunks: [], reports };
};

const refusalOf = (
  name: string,
  index: number,
  { asked: { toolChoice }, dialect, nativeUses }: ClassifyContext,
): { readonly refusal?: string } => {
  if (toolChoice === 'none') return { refusal: refusals.none };
  if (typeof toolChoice === 'object' && toolChoice.name !== name) {
    return { refusal: `Not executed: the tool to use now is ${toolChoice.name}.` };
  }
  return nativeUses + index < dialect.maxUses ? {} : { refusal: refusals.one };
};

const isAction = ({ text, tool }: Fault): boolean =>
  /\{|^<function=/.test(text) || (tool !== undefined && text.startsWith(tool));

const isOutput = ({ prose }: ParseResult, { asked: { outputSchema } }: ClassifyContext): boolean =>
  outputSchema !== undefined && typeof parsedJson(prose.join('')) === 'object';

const forbidsTools = ({ tools, asked }: ClassifyContext): boolean =>
  tools.size === 0 || asked.toolChoice === 'none';

const forcesTool = (needs: ClassifyContext): boolean =>
  !forbidsTools(needs) &&
  needs.nativeUses === 0 &&
  (needs.asked.toolChoice === 'required' || typeof needs.asked.toolChoice === 'object');

/** Words in place of an action, which are not emitted yet. */
const wordsInstead = (
  { fault, calls, answer, hasPreamble }: ParseResult,
  needs: ClassifyContext,
): readonly ModelChunk[] => {
  if (fault === undefined || calls.length > 0 || answer !== undefined) return [];
  if (isAction(fault) || isStrict(needs)) return [];
  if (!hasPreamble || !needs.mayRetract) return textOf(fault.text);
  return [
    { type: 'restart', why: 'The text is not an action.', isSameRequest: true },
    ...textOf(needs.written),
  ];
};

const textOf = (text: string): readonly ModelChunk[] => {
  const trimmed = text.trim();
  return trimmed === '' ? [] : [{ type: 'text', text: trimmed }];
};

const isStrict = (needs: ClassifyContext): boolean =>
  forcesTool(needs) || (needs.dialect.strict && !forbidsTools(needs) && needs.nativeUses === 0);

const skipped = ({ skipped: count }: ParseResult): readonly ModelReport[] =>
  count === 0
    ? []
    : [
        {
          type: 'warning',
          message: `The model wrote ${count} more unreadable actions after its first one. They are ignored.`,
        },
      ];

interface FeedbackContext {
  readonly prompts: DialectPrompts;
  readonly asked: PromptNeeds;
  readonly tools: ToolTable;
  readonly written: string;
}

const feedbackOf = (
  why: string,
  tool: string | undefined,
  { prompts, asked, tools, written }: FeedbackContext,
): Malformed => ({
  feedback: prompts.correction({
    ...asked,
    why,
    tool: tool === undefined ? undefined : tools.get(tool),
    forms: prompts.forms(asked),
    written: shortened(written.trim()),
  }),
  why,
  written,
});

const goOn = ({ prompts, asked }: FeedbackContext): Malformed => ({
  feedback: prompts.goOn({ ...asked, forms: prompts.forms(asked) }),
  why: 'The model has only thought so far.',
  isThought: true,
});

const maxQuoted = 1_500;

const shortened = (text: string): string => {
  const omitted = text.length - maxQuoted;
  if (omitted <= 0) return text;
  const head = text.slice(0, maxQuoted - 500);
  return `${head}\n[… ${omitted} characters omitted …]\n${text.slice(-500)}`;
};
