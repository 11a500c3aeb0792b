import { type AgentEvent, textOf, type ToolCallBlock } from '@millrace/core';
import type {} from '@millrace/core/long-term-memory';
import { isPlan, planText } from '@millrace/core/planning';
import type {} from '@millrace/core/retrieval';
import { milliseconds } from './milliseconds.js';
import { firstLines, oneLine } from './shorten.js';
import type { Theme } from './theme.js';

/** Lines of a tool's result that are shown. */
const resultLines = 3;

/** Says in whole lines, without their indentation, what an event tells; none where it tells nothing to a reader. */
export const describeEvent = (event: AgentEvent, theme: Theme, room: number): readonly string[] => {
  const { colors, unicode } = theme;
  const note = (text: string): readonly string[] => [
    colors.dim(oneLine(`${unicode ? '•' : '*'} ${text}`, room, theme)),
  ];
  switch (event.type) {
    case 'preActing':
      return [toolCall(event.toolCall, theme, room)];
    case 'actingChunk': {
      const text = `${event.toolCall.name}: ${asText(event.value)}`;
      return [colors.dim(oneLine(`${unicode ? '…' : '...'} ${text}`, room, theme))];
    }
    case 'postActing':
      return toolResult(event, theme, room);
    case 'preSummary':
      return note('The limit is reached: asking for an answer without tools.');
    case 'prePlanning':
      return note(`Thinks beside the loop: ${event.phase}.`);
    case 'stateChanged':
      // What waits for approval is told where it begins and ends to wait.
      if (event.name === 'approvals') return [];
      return isPlan(event.state)
        ? planText(event.state).split('\n').flatMap(note)
        : note(`${event.name}: ${asText(event.state)}`);
    case 'messageDiscarded':
      // Who interrupts knows why it ends, and the reply says it too.
      return event.why === 'interrupted' ? [] : note(`The message above is void: ${event.why}`);
    case 'vetoed':
      return note(`${event.name} vetoed ${event.of}.`);
    case 'handlerError':
      return note(`Passed over at ${event.of}: ${event.error.message}`);
    case 'modelWaiting':
      return note(`${event.model}: no answer for ${milliseconds(event.waitedMs)}, still waiting`);
    case 'modelRetry': {
      const wait = milliseconds(event.waitMs);
      return note(
        `${event.model}: attempt ${event.attempt} of ${event.attempts} failed, again in ${wait}: ${event.error.message}`,
      );
    }
    case 'modelFallback':
      return note(`${event.from} failed, ${event.to} takes over: ${event.error.message}`);
    case 'repaired':
      return note(
        event.toolCall === undefined
          ? 'The action was no JSON, and has been repaired.'
          : `The arguments for ${event.toolCall.name} were no JSON, and have been repaired.`,
      );
    case 'approvalRequested':
      return note(`${event.toolCall.name} waits for approval.`);
    case 'approvalDecided': {
      const verdict = event.approved ? 'approved' : 'not approved';
      const why = event.reason === undefined ? '' : ` ${event.reason}`;
      return note(`${event.toolCall.name} is ${verdict}.${why}`);
    }
    case 'suspended':
      return note(`${event.toolCall.name} is suspended: its result comes later.`);
    case 'uncertain':
      return note(
        `${event.toolCall.name} had begun when the call was broken off: ${thens[event.then]}`,
      );
    case 'queued':
      return note(`Waits its turn, behind ${event.ahead} others.`);
    case 'retrieved': {
      const sources = new Set(event.passages.map(({ source }) => source));
      return note(`Found: ${[...sources].join(', ')}`);
    }
    case 'recalled':
      return note(`Remembers: ${event.memories.map(({ text }) => text).join('; ')}`);
    case 'steered':
      return note(`Also said: ${textOf(event.message)}`);
    case 'warning':
      return note(event.message);
    case 'error':
      return event.parentId === undefined ? [] : note(`${event.agent.join('/')} failed.`);
    default:
      return [];
  }
};

const thens = {
  rerun: 'it is run again.',
  ask: 'somebody is to find out what came of it.',
  report: 'the model is told that nothing is known.',
} as const;

const toolCall = ({ name, input, invalidInput }: ToolCallBlock, theme: Theme, room: number) => {
  const { colors, unicode } = theme;
  const given = Object.entries(input).map(([key, value]) => `${key}: ${JSON.stringify(value)}`);
  const shown = oneLine(invalidInput ?? given.join(', '), room - name.length - 4, theme);
  return `${colors.cyan(unicode ? '→' : '->')} ${colors.bold(name)} ${shown}`.trimEnd();
};

const toolResult = (
  { toolCall: { name }, result, ms }: Extract<AgentEvent, { type: 'postActing' }>,
  theme: Theme,
  room: number,
): readonly string[] => {
  const { colors, unicode } = theme;
  const sign = result.isError
    ? colors.red(unicode ? '✗' : 'x')
    : colors.green(unicode ? '←' : '<-');
  const head = `${sign} ${colors.bold(name)}`;
  const time = colors.dim(`(${milliseconds(ms)})`);
  const lines = firstLines(textOf(result), room - 2, resultLines, theme);
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
