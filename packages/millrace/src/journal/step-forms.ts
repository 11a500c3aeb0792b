import { type Instructions, instructionsOf, resolved } from '../call/instructions.js';
import type { Opening } from '../call/layers/conversation.js';
import type { ModelAnswer } from '../phases/ask.js';
import type { ToolDecision } from '../phases/authorize-tool-call.js';
import { type Call, loopToolkit } from '../seams/call.js';
import type { Context } from '../seams/layer.js';
import { cell, type Locals, type Step } from '../step.js';
import { createToolkit, isToolGroup, type Toolkit, type ToolkitCell } from '../tools/toolkit.js';
import type { Tool, ToolEntry } from '../tools/types.js';
import { fatal, MillraceError } from '../values/errors.js';
import { canonicalJson, fnv1a, isRecord } from '../values/json.js';
import { areContentBlocks, withPlainDetails, withPlainResults } from '../values/message.js';
import type { CallInfo, Reply } from '../values/reply.js';
import {
  hasFields,
  isArrayOf,
  isAssistantMessage,
  isBoolean,
  isMessage,
  isNumeric,
  isOptional,
  isString,
  isToolCall,
  isToolResult,
  isUsage,
} from '../values/shape.js';
import type { ToolCallResult } from '../phases/review-result.js';

declare module '../step.js' {
  interface Step<T> {
    /** How a journal stores and checks the value. The kinds of the loop need none. Default: stores it as it is, unchecked. */
    readonly form?: StepForm<T>;
  }
}

/** How the value of a step is stored and read. */
export interface StepForm<T> {
  /** Converts the value to plain JSON. Default: it is plain JSON. */
  readonly write?: (value: T) => unknown;
  /** Whether a stored value is valid: files may be damaged. */
  readonly isWritten: (written: unknown) => boolean;
  /** Converts a stored value back. Default: it is the value. */
  readonly read?: (written: unknown) => T;
  /** A warning about what JSON could not express or what has changed since; or `undefined`. */
  readonly warning?: (written: unknown) => string | undefined;
}

/** How the value of a step is written and read: as the step says, or by its kind. */
export const formOf = <T>(
  { kind, input, form }: Pick<Step<T>, 'kind' | 'input' | 'form'>,
  context: Pick<Context, 'info' | 'local'>,
): Partial<StepForm<T>> =>
  // The kind of a step says what its value and its input are.
  // eslint-disable-next-line @typescript-eslint/consistent-type-assertions
  form ?? (formOfKind(kind, input as Pick<Call, 'toolkit'>, context) as Partial<StepForm<T>>);

const formOfKind = (
  kind: string,
  input: Pick<Call, 'toolkit'>,
  { info, local }: Pick<Context, 'info' | 'local'>,
): unknown => {
  switch (kind) {
    case 'open':
      return openingForm(info, local(instructionsOf).own, input.toolkit, local(toolsBefore));
    case 'model':
      return modelForm;
    case 'intent':
      return decisionForm;
    case 'tool':
      return actedForm(local(loopToolkit).own);
    case 'reply':
      return replyForm;
    default:
      return {};
  }
};

/** A recorded value has the type of its step. Forms check it. */
// eslint-disable-next-line @typescript-eslint/consistent-type-assertions, @typescript-eslint/no-unnecessary-type-parameters
export const taken = <T>(written: unknown): T => written as T;

/** The recorded form of an opening, with the name of the agent: sub-agents have no other record. */
const openingForm = (
  call: CallInfo,
  instructions: Instructions | undefined,
  toolkit: ToolkitCell,
  started: ToolsBefore,
): StepForm<Opening> => ({
  write: ({ history, late, ...opening }) => ({
    ...opening,
    agent: call.agent.at(-1),
    tools: fingerprintsOf(toolkit.current),
    history: withPlainResults(history),
    late: withPlainResults(late),
  }),
  isWritten: (written) =>
    hasFields(written, {
      history: isArrayOf(isMessage),
      late: isArrayOf(isMessage),
      instructions: isOptional(isString),
      createdAt: isNumeric,
      agent: isOptional(isString),
      tools: isOptional((tools) => isRecord(tools) && Object.values(tools).every(isString)),
      after: isOptional((value) => value === null || isString(value)),
      isCut: isOptional((value) => value === true),
    }),
  read: (written) => {
    const { agent: name, tools, ...opening } = asWritten(written);
    started.known = tools;
    if (name !== undefined && name !== call.agent.at(-1)) throw ofAnother(call, name);
    return { ...opening, instructions: resolved(instructions, call) };
  },
  warning: (written) => {
    const { instructions: before, tools } = asWritten(written);
    const changes = [
      ...(before === resolved(instructions, call)
        ? []
        : ['The instructions have changed since the call started.']),
      // Earlier releases did not record the tools.
      ...(tools === undefined ? [] : [toolChanges(tools, fingerprintsOf(toolkit.current)) ?? []]),
    ].flat();
    return changes.length === 0 ? undefined : changes.join(' ');
  },
});

interface WrittenOpening extends Opening {
  readonly agent?: string;
  readonly tools?: ToolFingerprints;
}

const asWritten = (written: unknown): WrittenOpening =>
  // eslint-disable-next-line @typescript-eslint/consistent-type-assertions
  written as WrittenOpening;

/** By the name of a tool: the hash of its input schema, and `!` if it is idempotent. Letters only: redaction must not change it. */
type ToolFingerprints = Readonly<Record<string, string>>;

interface ToolsBefore {
  known?: ToolFingerprints | undefined;
}

/** The tools of a resumed call when it started. */
const toolsBefore = cell('call', (): ToolsBefore => ({}));

/** Whether a tool may run again: it is idempotent, and was when the call started, as far as that is known. */
export const mayRepeat = (tool: Tool | undefined, local: Locals): boolean => {
  const { known: before = {} } = local(toolsBefore);
  if (tool?.idempotent !== true) return false;
  return !Object.hasOwn(before, tool.name) || before[tool.name]?.endsWith('!') === true;
};

const fingerprintsOf = ({ entries }: Toolkit): ToolFingerprints =>
  Object.fromEntries(
    entries
      .flatMap((entry) => (isToolGroup(entry) ? entry.tools : [entry]))
      .map((tool) => [tool.name, fingerprintOf(tool)]),
  );

/** Hashing a schema takes longer than the step that records it. */
const known = new WeakMap<Tool, string>();

const fingerprintOf = (tool: Tool): string => {
  const found = known.get(tool);
  if (found !== undefined) return found;
  const made = `${lettersOf(fnv1a(canonicalJson(tool.inputSchema)))}${tool.idempotent === true ? '!' : ''}`;
  known.set(tool, made);
  return made;
};

const lettersOf = (hash: number): string => {
  let rest = hash;
  let letters = '';
  for (let count = 0; count < 7; count += 1) {
    letters += String.fromCharCode(97 + (rest % 26));
    rest = Math.floor(rest / 26);
  }
  return letters;
};

/** A sentence on the tools that have changed; `undefined` if none has. */
const toolChanges = (before: ToolFingerprints, now: ToolFingerprints): string | undefined => {
  const changes = [
    ...Object.entries(before).flatMap(([name, then]) => {
      const own = Object.hasOwn(now, name) ? now[name] : undefined;
      return changesOf(then, own).map((change) => `'${name}' ${change}`);
    }),
    ...Object.keys(now)
      .filter((name) => !Object.hasOwn(before, name))
      .map((name) => `'${name}' is new`),
  ];
  if (changes.length === 0) return undefined;
  const more = changes.length - mostNamed;
  const named = [...changes.slice(0, mostNamed), ...(more > 0 ? [`and ${more} more changes`] : [])];
  return `The tools have changed since the call started: ${named.join(', ')}.`;
};

const mostNamed = 10;

const changesOf = (then: string, now: string | undefined): readonly string[] => {
  if (now === undefined) return ['is missing'];
  const [before, after] = [then, now].map((it) => it.endsWith('!'));
  return [
    ...(then.replace('!', '') === now.replace('!', '') ? [] : ['has another input schema']),
    ...(before === after ? [] : [after === true ? 'is idempotent now' : 'is no longer idempotent']),
  ];
};

const modelForm: StepForm<ModelAnswer> = {
  isWritten: (written) =>
    hasFields(written, {
      status: (status) => status === 'answered' || status === 'interrupted' || status === 'vetoed',
      message: isAssistantMessage,
      usage: isUsage,
      instead: isOptional(isString),
      finish: isOptional(isString),
      stop: isOptional(isBoolean),
      again: isOptional(isString),
      model: isOptional(isString),
      isShown: isOptional(isBoolean),
      halt: isOptional(isRecord),
      malformed: isOptional(isRecord),
    }),
};

const decisionForm: StepForm<ToolDecision> = {
  write: ({ value: _, ...decision }) => decision,
  isWritten: (written) =>
    hasFields(written, {
      toolCall: isToolCall,
      answer: isOptional((answer) =>
        hasFields(answer, { content: areContentBlocks, isError: isBoolean }),
      ),
      failed: isBoolean,
      usage: isUsage,
    }),
};

/** Activates exactly the groups that were active after a tool call, if it changed them. Ignores those that no longer exist. */
export const restoreGroups = (local: Locals, written: unknown): boolean => {
  const { own: toolkit } = local(loopToolkit);
  const groups = isRecord(written) ? written['groups'] : undefined;
  if (toolkit === undefined || !Array.isArray(groups)) return false;
  const restored = (entry: ToolEntry): ToolEntry =>
    isToolGroup(entry) ? Object.freeze({ ...entry, active: groups.includes(entry.name) }) : entry;
  toolkit.current = createToolkit(toolkit.current.entries.map(restored));
  return true;
};

const activeGroups = (toolkit: ToolkitCell | undefined): readonly string[] =>
  (toolkit?.current.groups ?? []).filter(({ active }) => active).map(({ name }) => name);

const actedForm = (toolkit: ToolkitCell | undefined): StepForm<ToolCallResult> => {
  const before = activeGroups(toolkit);
  return {
    write: ({ extras, result, ...acted }) => {
      const groups = activeGroups(toolkit);
      const isSame = JSON.stringify(groups) === JSON.stringify(before);
      return {
        ...acted,
        ...(!isSame && { groups }),
        result: withPlainDetails(result),
        lostExtras: Object.keys(extras),
      };
    },
    isWritten: isActed,
    read: (written) => ({ ...taken<ToolCallResult>(written), extras: {} }),
    warning: (written) => {
      const names = isRecord(written) ? written['lostExtras'] : undefined;
      return Array.isArray(names) && names.length > 0
        ? `The extras ${names.join(', ')} of a tool are lost: a journal cannot store them.`
        : undefined;
    },
  };
};

const isActed = (written: unknown): boolean =>
  hasFields(written, {
    index: isNumeric,
    toolCall: isToolCall,
    result: isToolResult,
    ms: isNumeric,
    executed: isBoolean,
    failed: isBoolean,
    finalAnswer: isOptional(areContentBlocks),
    stop: isBoolean,
    groups: isOptional(isArrayOf(isString)),
    usage: isUsage,
    below: isOptional(isRecord),
    lostExtras: isArrayOf(isString),
  });

const replyForm: StepForm<Reply> = {
  isWritten: (written) =>
    isAssistantMessage(written) &&
    hasFields(written, {
      text: isString,
      reason: isString,
      finish: isString,
      iterations: isNumeric,
      toolCalls: isArrayOf(isRecord),
      suspensions: isOptional(isArrayOf(isRecord)),
      usage: isUsage,
      usageByPhase: isRecord,
      createdAt: isNumeric,
      elapsedMs: isNumeric,
    }),
};

const ofAnother = ({ callId, agent }: CallInfo, name: string): MillraceError =>
  fatal(
    new MillraceError(
      'invalidState',
      `The call '${callId}' was started by the agent '${name}', but '${agent.at(-1) ?? ''}' makes it now. Give parallel calls of a tool their own 'callId'.`,
    ),
  );
