import { parsedJson } from '../json.js';
import type { ModelChunk, ModelReport, ToolChoice } from '../model.js';
import type { JsonSchema } from '../schema/json-schema.js';
import type { Dialect } from './dialect.js';
import { feedbackOf, goOn } from './feedback.js';
import type { Fault, Findings } from './findings.js';
import type { ToolTable } from './tool-table.js';

/** What a reply is judged with. */
export interface JudgeNeeds {
  readonly dialect: Pick<Dialect, 'strict' | 'maxUses'>;
  readonly tools: ToolTable;
  readonly toolChoice: ToolChoice | undefined;
  readonly outputSchema: JsonSchema | undefined;
  /** The forms that a reply may have. */
  readonly forms: string;
  /** All that the model wrote. */
  readonly written: string;
  /** All that counts as a thought. */
  readonly thought: string;
  /** The model has used tools natively beside its text. */
  readonly nativeUses: number;
}

/** What comes of a reply at its end. */
export interface Judgement {
  readonly chunks: readonly ModelChunk[];
  readonly reports: readonly ModelReport[];
}

const refusal =
  'Not executed: one action per step. Ask for it again in your next step, if you still need it.';

/** Decides what a whole reply comes to: tools to use, an answer, or what the model is told. */
export const judge = (findings: Findings, needs: JudgeNeeds): Judgement => {
  const { asks, fault, conflict } = findings;
  const text = textLeft(findings, needs);
  const said: readonly ModelChunk[] = text === '' ? [] : [{ type: 'text', text }];
  const answer = (findings.answer ?? []).join('').trim();
  const malformed = (what: string, tool?: string, isAnswer = false): Judgement => ({
    chunks: [...said, { type: 'malformed', ...feedbackOf(what, tool, needs), isAnswer }],
    reports: [],
  });
  const reports: readonly ModelReport[] = findings.repairs.map((repair) => ({
    type: 'repaired',
    ...repair,
  }));

  if (answer !== '' && forbidsTools(needs)) return { chunks: [], reports };
  if (asks.length > 0 && answer !== '') {
    return malformed(
      'it has an action and a final answer at once. Write one of them.',
      asks[0]?.name,
    );
  }
  if (answer !== '' && forcesTool(needs))
    return malformed('it answers, where a tool must be used.');
  if (conflict !== undefined) return malformed(conflict);
  if (fault !== undefined && (answer === '' || isAction(fault))) {
    return malformed(fault.what, fault.tool, text !== '');
  }
  if (asks.length > 0) {
    return {
      chunks: asks.map(({ name, input }, index) => ({
        type: 'toolUse',
        name,
        input,
        ...refusalOf(name, index, needs),
      })),
      reports: [...reports, ...passedOver(findings)],
    };
  }
  if (findings.answer !== undefined) return { chunks: said, reports };
  if (findings.prose.length > 0) {
    return isStrict(needs) && !isOutput(findings, needs)
      ? malformed(
          'it is neither an action nor a final answer in the form that was asked for.',
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
    ? { chunks: [{ type: 'malformed', isThought: true, feedback: goOn(needs) }], reports }
    : { chunks: [], reports };
};

/** Why a use of a tool is not run. */
const refusalOf = (
  name: string,
  index: number,
  needs: JudgeNeeds,
): { readonly refusal?: string } => {
  const { toolChoice, dialect, nativeUses } = needs;
  if (toolChoice === 'none') return { refusal: 'Not executed: no tool may be used now.' };
  if (typeof toolChoice === 'object' && toolChoice.name !== name) {
    return { refusal: `Not executed: the tool to use now is ${toolChoice.name}.` };
  }
  return nativeUses + index < dialect.maxUses ? {} : { refusal };
};

/** Tells whether what could not be read is more than words that say what to do. */
const isAction = ({ text, tool }: Fault): boolean => tool !== undefined || text.includes('{');

/** Tells whether prose is the answer in the form that was asked for. */
const isOutput = ({ prose }: Findings, { outputSchema }: JudgeNeeds): boolean =>
  outputSchema !== undefined && typeof parsedJson(prose.join('')) === 'object';

const forbidsTools = ({ tools, toolChoice }: JudgeNeeds): boolean =>
  tools.size === 0 || toolChoice === 'none';

const forcesTool = (needs: JudgeNeeds): boolean =>
  !forbidsTools(needs) &&
  needs.nativeUses === 0 &&
  (needs.toolChoice === 'required' || typeof needs.toolChoice === 'object');

/** Text that has not been said while it arrived: prose that could have been a thought, or words in the place of an action. */
const textLeft = (
  { unsaid, fault, asks, answer, hasLead }: Findings,
  { written }: JudgeNeeds,
): string => {
  if (asks.length > 0 || answer !== undefined) return '';
  if (fault === undefined) return unsaid.join('').trim();
  if (fault.text.includes('{')) return '';
  return hasLead ? written.trim() : fault.text;
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
