import { titleOfTool, type ToolTitles } from './tools.js';
import {
  isQuestion,
  plainTextOf,
  type ToolPart,
  type UiMessage,
  type UiPart,
} from './ui-message.js';

/**
 * A conversation as Markdown: its questions and answers, the names and outcomes of tools, and sources. Thoughts, and the arguments and
 * results of tools, are left out.
 */
export const toMarkdown = (
  title: string,
  messages: readonly UiMessage[],
  tools: ToolTitles,
): string =>
  [
    `# ${inLine(title)}`,
    ...messages.flatMap((message) => [
      isQuestion(message) ? '## You' : '## Answer',
      ...(isQuestion(message)
        ? questionOf(message)
        : message.parts.flatMap((part) => partOf(part, tools))),
      ...(message.end?.error === undefined ? [] : [`*Error: ${inLine(message.end.error.text)}*`]),
    ]),
  ].join('\n\n') + '\n';

/** Saves a conversation as a file. */
export const downloadMarkdown = (
  title: string,
  messages: readonly UiMessage[],
  tools: ToolTitles,
): void => {
  const file = new Blob([toMarkdown(title, messages, tools)], { type: 'text/markdown' });
  const link = document.createElement('a');
  link.href = URL.createObjectURL(file);
  link.download = `${
    title
      .replaceAll(/[^\p{L}\p{N} -]/gu, '')
      .trim()
      .slice(0, 60) || 'chat'
  }.md`;
  link.click();
  URL.revokeObjectURL(link.href);
};

const questionOf = (message: UiMessage): readonly string[] => [
  ...message.parts.filter(isFile).flatMap((part) => partOf(part, {})),
  // Users write text, not Markdown.
  ...lines(plainTextOf(message)),
];

const isFile = ({ type }: UiPart): boolean => type === 'file';

const lines = (text: string): readonly string[] =>
  text === '' ? [] : [text.split('\n').map(escaped).join('  \n')];

const partOf = (part: UiPart, tools: ToolTitles): readonly string[] => {
  switch (part.type) {
    case 'text':
      return part.text.trim() === '' ? [] : [part.text.trim()];
    case 'tool':
      return [`*Tool ${inLine(titleOfTool(tools, part.toolName))}: ${outcomes[part.state]}*`];
    case 'file':
      return [`*File: ${inLine(part.filename ?? part.mediaType)}*`];
    case 'steered':
      return [`> ${part.text.split('\n').map(escaped).join('\n> ')}`];
    case 'sources':
      return [
        part.sources
          .map(
            ({ source, title }) =>
              `- ${inLine(title === undefined ? source : `${title}: ${source}`)}`,
          )
          .join('\n'),
      ];
    default:
      return [];
  }
};

const outcomes: Readonly<Record<ToolPart['state'], string>> = {
  input: 'not finished',
  running: 'not finished',
  done: 'done',
  failed: 'failed',
  denied: 'denied',
  cancelled: 'cancelled',
  stopped: 'stopped',
};

const inLine = (text: string): string => escaped(text.replaceAll(/\s+/gu, ' ').trim());

const escaped = (text: string): string =>
  text.replaceAll(/[\\`*_[\]<>#|~]/gu, (char) => `\\${char}`);
