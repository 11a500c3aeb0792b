import {
  cell,
  type Layer,
  type Message,
  type ModelRequest,
  toolCallsOf,
  type ToolCallBlock,
} from 'millrace';
import { phase, type PhaseFactory } from 'millrace/phases';
import { isRecord } from 'millrace/values';
import type { SkillSummary } from './skill.js';

/** The tools that skills work with: reading them is always allowed. */
export const skillTools = ['read_skill', 'search_skills'] as const;

/** The skills of a call, and the restriction of the turn under way. */
export const skillsOfCall = cell(
  'call',
  (): { listed: readonly SkillSummary[]; restriction?: Restriction | undefined } => ({
    listed: [],
  }),
);

interface Restriction {
  /** The skills that restrict. */
  readonly by: readonly string[];
  readonly named: readonly string[];
  readonly tools: ReadonlySet<string>;
}

/**
 * The parts of a layer that restrict tools to those that the skills in the conversation allow. It is derived from the
 * conversation in each turn: it survives a resume, and ends when memory no longer has the skill. Read skills without
 * `allowed-tools` neither restrict nor add.
 */
export const restrictingTools: Required<Pick<Layer, 'turn' | 'model' | 'step'>> = {
  turn: (phases) => [restricting, ...phases],
  model: (context) => (next) => ({
    ...next,
    stream$: (request, modelContext) =>
      next.stream$(limited(request, context.local(skillsOfCall).restriction), modelContext),
  }),
  step: (context) => (next) => (step) => {
    const { restriction } = context.local(skillsOfCall);
    if (restriction === undefined || step.kind !== 'intent' || step.cut === undefined) {
      return next(step);
    }
    const { input } = step;
    const name = isRecord(input) ? String(input['name']) : '';
    if (restriction.tools.has(name)) return next(step);
    const message = `Not run: ${allowedBy(restriction)}.`;
    return step.cut({ reason: 'notAllowed', message });
  },
};

const allowedBy = ({ by, named }: Restriction): string => {
  const tools = named.length === 0 ? 'no tools' : `only ${named.join(', ')}`;
  return by.length === 1
    ? `the skill '${by[0]}' allows ${tools}`
    : `the skills ${by.join(', ')} allow ${tools}`;
};

const restricting: PhaseFactory = (context) =>
  phase((run) => {
    const state = context.local(skillsOfCall);
    state.restriction = restrictionIn(run.messages, state.listed);
    return run;
  });

const restrictionIn = (
  messages: readonly Message[],
  listed: readonly SkillSummary[],
): Restriction | undefined => {
  const read = new Set(readSkillsIn(messages));
  const restrictive = listed.filter(({ name, allowedTools }) => allowedTools && read.has(name));
  if (restrictive.length === 0) return undefined;
  const named = [...new Set(restrictive.flatMap(({ allowedTools = [] }) => allowedTools))];
  return {
    by: restrictive.map(({ name }) => name),
    named,
    // Without `read_result`, the rest of a shortened result would be lost.
    tools: new Set([...named, ...skillTools, 'read_result']),
  };
};

/** The names of the skills whose instructions a conversation has. */
const readSkillsIn = (messages: readonly Message[]): readonly string[] => {
  const failed = new Set(
    messages.flatMap((message) =>
      message.role === 'tool'
        ? message.content.filter(({ isError }) => isError).map(({ toolCallId }) => toolCallId)
        : [],
    ),
  );
  return messages
    .flatMap((message) => (message.role === 'assistant' ? toolCallsOf(message) : []))
    .filter(({ id, name, input }) => isReading(name, input) && !failed.has(id))
    .map(({ input }) => String(input['name']));
};

const isReading = (name: string, input: ToolCallBlock['input']): boolean =>
  name === 'read_skill' && input['path'] === undefined;

const limited = (request: ModelRequest, restriction: Restriction | undefined): ModelRequest => {
  const { tools } = request;
  if (restriction === undefined || tools === undefined) return request;
  return { ...request, tools: tools.filter(({ name }) => restriction.tools.has(name)) };
};
