import { parsedJson } from '../../values/json.js';
import type { ModelChunk, ModelReport, Malformed } from '../../models/model.js';
import type { Dialect, DialectPrompts, PromptNeeds } from './dialects.js';
import { amongText, type Fault, type Findings } from './findings.js';
import type { ToolTable } from './read-entry.js';

export interface JudgeNeeds extends FeedbackNeeds {
  readonly dialect: Pick<Dialect, 'strict' | 'maxUses'>;
  readonly thought: string;
  readonly nativeUses: number;
  readonly mayRetract: boolean;
}

export interface Judgement {
  readonly chunks: readonly ModelChunk[];
  readonly reports: readonly ModelReport[];
}

const refusal =
  'Not executed: one action per step. Ask for it again in your next step, if you still need it.';

export const judge = (findings: Findings, needs: JudgeNeeds): Judgement => {
  const { asks, fault, conflict } = findings;
  const said = unsaid(findings, needs);
  const answer = (findings.answer ?? []).join('').trim();
  const malformed = (what: string, tool?: string, isAnswer = false): Judgement => ({
    chunks: [...said, { type: 'malformed', ...feedbackOf(what, tool, needs), isAnswer }],
    reports: [],
  });
  const reports: readonly ModelReport[] = findings.repairs.map((repair) => ({
    type: 'repaired',
    ...repair,
  }));

  if (answer !== '' && conflict === undefined && forbidsTools(needs))
    return { chunks: [], reports };
  if (asks.length > 0 && answer !== '') {
    return malformed(
      'It has an action and a final answer at once. Write one of them.',
      asks[0]?.name,
    );
  }
  if (answer !== '' && forcesTool(needs))
    return malformed('It answers, where a tool must be used.');
  if (conflict !== undefined) return malformed(conflict);
  if (fault !== undefined && (answer === '' || isAction(fault))) {
    return malformed(fault.what, fault.tool, said.length > 0);
  }
  if (asks.length > 0) {
    return {
      chunks: asks.map(({ name, input }, index) => ({
        type: 'toolCall',
        name,
        input,
        ...refusalOf(name, index, needs),
      })),
      reports: [...reports, ...passedOver(findings)],
    };
  }
  if (findings.answer !== undefined) return { chunks: said, reports };
  if (findings.prose.length > 0) {
    if (findings.mention !== undefined && !forbidsTools(needs)) {
      return malformed(amongText, findings.mention);
    }
    return isStrict(needs) && !isOutput(findings, needs)
      ? malformed(
          'It is neither an action nor a final answer in the form that was asked for.',
          undefined,
          true,
        )
      : { chunks: said, reports };
  }
  // Where no tool may be used, there is nothing to go on with.
  if (forbidsTools(needs) && needs.thought !== '') {
    return { chunks: [{ type: 'text', text: needs.thought }], reports };
  }
  return findings.hasThought && needs.nativeUses === 0
    ? { chunks: [{ type: 'malformed', ...goOn(needs) }], reports }
    : { chunks: [], reports };
};

const refusalOf = (
  name: string,
  index: number,
  { asked: { toolChoice }, dialect, nativeUses }: JudgeNeeds,
): { readonly refusal?: string } => {
  if (toolChoice === 'none') return { refusal: 'Not executed: no tool may be used now.' };
  if (typeof toolChoice === 'object' && toolChoice.name !== name) {
    return { refusal: `Not executed: the tool to use now is ${toolChoice.name}.` };
  }
  return nativeUses + index < dialect.maxUses ? {} : { refusal };
};

const isAction = ({ text, tool }: Fault): boolean =>
  text.includes('{') || (tool !== undefined && text.startsWith(tool));

const isOutput = ({ prose }: Findings, { asked: { outputSchema } }: JudgeNeeds): boolean =>
  outputSchema !== undefined && typeof parsedJson(prose.join('')) === 'object';

const forbidsTools = ({ tools, asked }: JudgeNeeds): boolean =>
  tools.size === 0 || asked.toolChoice === 'none';

const forcesTool = (needs: JudgeNeeds): boolean =>
  !forbidsTools(needs) &&
  needs.nativeUses === 0 &&
  (needs.asked.toolChoice === 'required' || typeof needs.asked.toolChoice === 'object');

/** What has not been said while it arrived: prose that could have been a thought, or words in the place of an action, with those before them. */
const unsaid = (
  { unsaid: prose, fault, asks, answer, hasLead }: Findings,
  needs: JudgeNeeds,
): readonly ModelChunk[] => {
  if (asks.length > 0 || answer !== undefined) return [];
  if (fault === undefined) return textOf(prose.join(''));
  if (isAction(fault) || isStrict(needs)) return [];
  if (!hasLead || !needs.mayRetract) return textOf(fault.text);
  return [{ type: 'restart', why: 'What the model wrote is no action.' }, ...textOf(needs.written)];
};

const textOf = (text: string): readonly ModelChunk[] => {
  const trimmed = text.trim();
  return trimmed === '' ? [] : [{ type: 'text', text: trimmed }];
};

const isStrict = (needs: JudgeNeeds): boolean =>
  forcesTool(needs) || (needs.dialect.strict && !forbidsTools(needs) && needs.nativeUses === 0);

const passedOver = ({ passedOver: count }: Findings): readonly ModelReport[] =>
  count === 0
    ? []
    : [
        {
          type: 'warning',
          message: `The model wrote ${count} more that could not be read behind its action: it is passed over.`,
        },
      ];

interface FeedbackNeeds {
  readonly prompts: DialectPrompts;
  readonly asked: PromptNeeds;
  readonly tools: ToolTable;
  readonly written: string;
}

const feedbackOf = (
  why: string,
  tool: string | undefined,
  { prompts, asked, tools, written }: FeedbackNeeds,
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

const goOn = ({ prompts, asked }: FeedbackNeeds): Malformed => ({
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
