import { checkOptions, isText, type Rule } from 'millrace/values';
import type { ChatProtocol } from '@millrace/server/chat';
import { pageRoutes } from '@millrace/server/page';
import { assets, html } from '#assets';
import { answerRoutes } from './answers.js';

/** Options of `chatPage`. */
export interface ChatPageOptions {
  /** The name above the conversations. Default: the name of the agent. */
  readonly title?: string | undefined;
  /** The path of the page. Default: `/`. */
  readonly path?: string | undefined;
  /** The `path` of the chat server, which has the routes that the page uses. Default: `/api`. */
  readonly api?: string | undefined;
}

/**
 * Adds a chat page to a chat server: `chatServer(agent, { protocols: [chatPage()] })`. The page talks to the routes for
 * clients of the AI SDK, with the cookies of its site. Its scripts and styles have names that change with their content,
 * so browsers keep them. A wrong option is a `config` error.
 */
export const chatPage = (options: ChatPageOptions = {}): ChatProtocol => {
  checkOptions('chatPage()', options, rules);
  const { path = '/', api = '/api' } = options;
  return ({ agent, masks }) => {
    const values = { title: options.title ?? agent.name, api: api.replace(/\/+$/u, '') };
    const page = html.replaceAll(/\{(title|api)\}/gu, (_, name: keyof typeof values) =>
      escaped(values[name]),
    );
    return [...pageRoutes({ html: page, assets, path }), ...answerRoutes(values.api, { masks })];
  };
};

const isPath: Rule = [
  (value) => typeof value === 'string' && /^\/$|^(?:\/[\w.~-]+)*\/?$/u.test(value),
  "a path, such as '/'",
];

const rules: Readonly<Record<keyof ChatPageOptions, Rule>> = {
  title: isText,
  path: [(value) => value !== '' && isPath[0](value), isPath[1]],
  api: isPath,
};

const escaped = (text: string): string =>
  text.replaceAll(/[&<>"]/gu, (char) => `&#${String(char.codePointAt(0))};`);
