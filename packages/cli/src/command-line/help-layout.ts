import { type Command, Help, type HelpConfiguration } from 'commander';
import { columnsOf } from '../presentation/columns.js';

/** The columns of a terminal; undefined for another output. */
interface Terminal {
  readonly columns?: number | undefined;
}

const leastWidth = 40;
/** Wider lines are hard to read; the width of an output that is not a terminal, too. */
const mostWidth = 100;

/** Below this width, a description stands under its option. */
const narrow = 80;

const widthFor = ({ columns = mostWidth }: Terminal): number =>
  Math.min(Math.max(columns === 0 ? mostWidth : columns, leastWidth), mostWidth);

/** The columns of an output, if it is a terminal. */
export const columnsIn = ({
  isTTY,
  columns,
}: Terminal & { readonly isTTY?: boolean | undefined }) => (isTTY === true ? columns : undefined);

/** The layout of the help: as wide as the terminal, from 40 to 100 columns. */
export const helpFor = (output: Terminal): HelpConfiguration => {
  const helpWidth = widthFor(output);
  const shared = { helpWidth, displayWidth: columnsOf };
  return helpWidth < narrow ? { ...shared, minWidthToWrap: 20, formatItem: itemBelow } : shared;
};

/** A command to copy, and what stands for a space in it while lines break. */
const commandToCopy = /npx @millrace\/cli[^;)\n]*/gu;
const heldSpace = '\u0000';

/** Wraps an error in how the command is used, for a terminal. Commands to copy stay whole. */
export const wrapUsage = (text: string, columns: number | undefined): string =>
  columns === undefined
    ? text
    : Object.assign(new Help(), { displayWidth: columnsOf })
        .boxWrap(
          text.replaceAll(commandToCopy, (command) => command.replaceAll(' ', heldSpace)),
          widthFor({ columns }),
        )
        .replaceAll(heldSpace, ' ');

function itemBelow(
  this: Help,
  term: string,
  _termWidth: number,
  description: string,
  helper: Help,
): string {
  const lines = helper.boxWrap(description, (this.helpWidth ?? narrow) - 6).split('\n');
  return [`  ${term}`, ...lines.map((line) => `      ${line}`.trimEnd())].join('\n').trimEnd();
}

/** Lays out the text after the options: paragraphs are filled, and lines that are indented stay as they are. */
export const notesIn = (text: string, command: Command): string => {
  const help = command.createHelp();
  const width = help.helpWidth ?? mostWidth;
  return text
    .split('\n\n')
    .map((paragraph) =>
      /^ /m.test(paragraph)
        ? paragraph
        : paragraph.replace(/\S[^]*/, (it) => help.boxWrap(it.replaceAll('\n', ' '), width)),
    )
    .join('\n\n');
};
