import { type AgentEvent, only, textOf } from 'millrace';
import { type ComponentStatus, type FlowState, flowStates } from '@millrace/flow';
import { connect, filter, map, merge, type OperatorFunction, scan } from 'rxjs';
import type { FlowArguments } from '../command-line/arguments.js';
import { printable } from '../presentation/printable.js';
import type { Colors, Theme } from '../presentation/theme.js';
import type { Setting } from '../setting.js';

/** More lines than this may not fit into a terminal, which cannot be redrawn then. */
const maxLines = 30;

/** Shows the components of a flow while they run, redrawn in a terminal, else one line for each change; then the answer. */
export const presentLive = (
  document: unknown,
  { theme, environment }: Setting<FlowArguments>,
): OperatorFunction<AgentEvent, string> => {
  const isTerminal = environment.stdout.isTTY === true;
  const states = flowStates(document);
  const answers: OperatorFunction<AgentEvent, string> = (event$) =>
    event$.pipe(
      only('postCall'),
      filter(({ parentId }) => parentId === undefined),
      map(({ reply }) => `\n${printable(textOf(reply)).trimEnd()}\n`),
    );
  return (event$) =>
    event$.pipe(
      connect((shared$) =>
        merge(
          shared$.pipe(
            states,
            scan(
              ({ state: before }: Drawn, state): Drawn => ({
                state,
                text: isTerminal ? redrawn(before, state, theme) : changes(before, state),
              }),
              { state: undefined, text: '' },
            ),
            map(({ text }) => text),
            filter((text) => text !== ''),
          ),
          shared$.pipe(answers),
        ),
      ),
    );
};

interface Drawn {
  readonly state: FlowState | undefined;
  readonly text: string;
}

const redrawn = (before: FlowState | undefined, state: FlowState, theme: Theme): string => {
  const entries = Object.entries(state.components);
  if (entries.length > maxLines) return changes(before, state);
  const lines = entries.map(([id, status]) => lineOf(id, status, theme));
  const up = before === undefined ? '\n' : `\u001b[${lines.length}A\u001b[J`;
  return `${up}${lines.join('\n')}\n`;
};

const changes = (before: FlowState | undefined, state: FlowState): string =>
  Object.entries(state.components)
    .filter(([id, status]) => before !== undefined && before.components[id] !== status)
    .map(([id, status]) => `${printable(id)}: ${status}\n`)
    .join('');

const lineOf = (id: string, status: ComponentStatus, { colors, unicode }: Theme): string => {
  const [sign, plain, color] = looks(colors)[status];
  const word = status === 'pending' || status === 'done' ? '' : `  ${status}`;
  return color(`${unicode ? sign : plain} ${printable(id)}${word}`);
};

type Look = readonly [sign: string, plain: string, color: (text: string) => string];

const looks = (colors: Colors): Readonly<Record<ComponentStatus, Look>> => ({
  pending: ['○', '.', colors.dim],
  running: ['●', '>', colors.yellow],
  done: ['✓', '+', colors.green],
  failed: ['✗', 'x', colors.red],
  skipped: ['–', '-', colors.dim],
  suspended: ['◇', '?', colors.cyan],
  interrupted: ['■', '!', colors.dim],
});
