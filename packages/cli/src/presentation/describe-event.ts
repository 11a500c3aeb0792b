import { type AgentEvent, textOf, type ToolCallBlock } from 'millrace';
import type {} from 'millrace/long-term-memory';
import { isPlan, planText } from 'millrace/planning';
import type {} from 'millrace/retrieval';
import { withoutSecrets } from 'millrace/values';
import { milliseconds } from './milliseconds.js';
import { printableName } from './printable.js';
import { firstLines, oneLine } from './shorten.js';
import type { Theme } from './theme.js';

/** Maximum number of lines shown of a tool result. */
const resultLines = 3;

/** The same of an error of a tool. */
const errorLines = 20;

/** The columns of an error that are shown: a terminal wraps them. */
const longestError = 1_000;

/** Describes an event in lines without indentation; empty if it is not shown. */
export const describeEvent = (event: AgentEvent, theme: Theme, room: number): readonly string[] => {
  const { colors, unicode } = theme;
  const notes = (texts: readonly string[], most = room): readonly string[] =>
    texts.map((text) => colors.dim(oneLine(`${unicode ? '•' : '*'} ${text}`, most, theme)));
  switch (event.type) {
    case 'preActing':
      return [toolCall(event.toolCall, theme, room)];
    case 'actingChunk': {
      const text = `${event.toolCall.name}: ${asText(event.value)}`;
      return [colors.dim(oneLine(`${unicode ? '…' : '...'} ${text}`, room, theme))];
    }
    case 'postActing':
      return toolResult(event, theme, room);
    case 'stateChanged':
      // Approvals and the components of a flow have events of their own.
      if (event.name === 'approvals' || event.name === 'flow') return [];
      return isPlan(event.state)
        ? notes(planText(event.state).split('\n'))
        : notes([`${event.name}: ${asText(event.state)}`]);
    default: {
      const note = noteOf(event);
      if (note === undefined) return [];
      return 'error' in event ? notes([withoutSecrets(note)], longestError) : notes([note]);
    }
  }
};

/** The sentence about an event; undefined if nothing is said. */
const noteOf = (event: AgentEvent): string | undefined => {
  switch (event.type) {
    case 'preSummary':
      return 'The limit is reached: asking for an answer without tools.';
    case 'prePlanning':
      return `Planning: ${event.phase}.`;
    case 'messageDiscarded':
      // The user knows about the interrupt, and the reply mentions it.
      return event.why === 'interrupted'
        ? undefined
        : `The message above was discarded: ${event.why}`;
    case 'vetoed':
      return `${event.name} vetoed ${event.of}.`;
    case 'handlerError':
      return `Error ignored at ${event.of}: ${event.error.message}`;
    case 'modelWaiting':
      return `${event.model}: no answer for ${milliseconds(event.waitedMs)}, still ${event.on === undefined ? 'waiting' : `working on ${event.on}`}`;
    case 'modelRetry': {
      const wait = milliseconds(event.waitMs);
      return `${event.model}: attempt ${event.attempt} of ${event.attempts} failed, retry in ${wait}: ${event.error.message}`;
    }
    case 'modelFallback':
      return `${event.from} failed, ${event.to} takes over: ${event.error.message}`;
    case 'repaired':
      return event.toolCall === undefined
        ? 'The answer or the action was repaired.'
        : `The call of ${event.toolCall.name} was repaired.`;
    case 'approvalRequested':
      return `${event.toolCall.name} waits for approval.`;
    case 'approvalDecided': {
      const verdict = event.approved ? 'approved' : 'not approved';
      const why = event.reason === undefined ? '' : ` ${event.reason}`;
      return `${event.toolCall.name} is ${verdict}.${why}`;
    }
    case 'suspended':
      return `${event.toolCall.name} is suspended: its result comes later.`;
    case 'uncertain':
      return `${event.toolCall.name} was running when the call stopped: ${uncertainOutcomes[event.then]}`;
    case 'queued':
      return `Queued: ${event.ahead} ahead.`;
    case 'retrieved': {
      const sources = new Set(event.passages.map(({ source }) => source));
      return `Found: ${[...sources].join(', ')}`;
    }
    case 'recalled':
      return `Remembers: ${event.memories.map(({ text }) => text).join('; ')}`;
    case 'steered':
      return `Added: ${textOf(event.message)}`;
    case 'warning':
      return event.message;
    case 'error':
      return event.parentId === undefined
        ? undefined
        : `${event.agent.join('/')} failed (${event.error.code}): ${event.error.message}`;
    default:
      return undefined;
  }
};

const uncertainOutcomes = {
  rerun: 'it runs again.',
  ask: 'a human is asked about the result.',
  report: 'the model is informed that the result is unknown.',
} as const;

const toolCall = (of: ToolCallBlock, theme: Theme, room: number) => {
  const { input, invalidInput } = of;
  const name = printableName(of.name);
  const { colors, unicode } = theme;
  const given = Object.entries(input).map(([key, value]) => `${key}: ${JSON.stringify(value)}`);
  const shown = oneLine(invalidInput ?? given.join(', '), room - name.length - 4, theme);
  return `${colors.cyan(unicode ? '→' : '->')} ${colors.bold(name)} ${shown}`.trimEnd();
};

const toolResult = (
  { toolCall: of, result, ms }: Extract<AgentEvent, { type: 'postActing' }>,
  theme: Theme,
  room: number,
): readonly string[] => {
  const name = printableName(of.name);
  const { colors, unicode } = theme;
  const sign = result.isError
    ? colors.red(unicode ? '✗' : 'x')
    : colors.green(unicode ? '←' : '<-');
  const head = `${sign} ${colors.bold(name)}`;
  const time = colors.dim(`(${milliseconds(ms)})`);
  const [most, count] = result.isError ? [longestError, errorLines] : [room - 2, resultLines];
  const text = textOf(result);
  const lines = firstLines(result.isError ? withoutSecrets(text) : text, most, count, theme);
  const [only = '(nothing)', ...more] = lines;
  return more.length === 0 && only.length + name.length + 14 <= room
    ? [`${head} ${only} ${time}`]
    : [`${head} ${time}`, ...lines.map((line) => `  ${line}`)];
};

const asText = (value: unknown): string => {
  if (typeof value === 'string') return value;
  try {
    return JSON.stringify(value);
  } catch {
    return '(something that cannot be shown)';
  }
};
