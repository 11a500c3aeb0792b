import { type Agent, MillraceError } from 'millrace';
import { checkOptions, isFunction, isRecord, isText, oneOf, type Rule } from 'millrace/values';
import type { ChatProtocol } from '@millrace/server/chat';
import { pageRoutes } from '@millrace/server/page';
import { assets, html } from '#assets';
import { answersRoute } from './answers.js';
import {
  assertNoDecision,
  assertOrigins,
  embeddedRoutes,
  isOrigins,
  notEmbeddedRoutes,
  scriptName,
} from './embedding.js';
import { feedbackRoute, type OnFeedback } from './feedback.js';
import { toolTitlesRoute } from './tool-titles.js';
import { type UncertainBy, uncertainRoute } from './uncertain.js';

export type { Feedback, OnFeedback } from './feedback.js';

/** A color of the page: a variable of its style. */
export type PageColor = (typeof colors)[number];

const colors = [
  ...([
    'page',
    'panel',
    'card',
    'line',
    'field-line',
    'text',
    'soft',
    'accent',
    'on-accent',
  ] as const),
  ...(['accent-soft', 'bad', 'bad-soft', 'warn', 'warn-soft'] as const),
] as const;

/** Options of `chatPage`. */
export interface ChatPageOptions {
  /** The name above the conversations. Default: the name of the agent. */
  readonly title?: string | undefined;
  /** The path of the page. Default: `/`. */
  readonly path?: string | undefined;
  /** The `path` of the chat server, which has the routes that the page uses. Default: `/api`. */
  readonly api?: string | undefined;
  /** Questions that a new conversation offers, up to 8. Default: none. */
  readonly starters?: readonly string[] | undefined;
  /** A picture beside the title: a path of this site, or a `data:` URL. Default: none. */
  readonly logo?: string | undefined;
  /** A line below the field for messages, such as a notice. Default: none. */
  readonly footer?: string | undefined;
  /** The pages of the agents of this site, by their names: paths, such as those of `mountServers`. Users choose among them. Default: none. */
  readonly agents?: Readonly<Record<string, string>> | undefined;
  /**
   * Names of models that users choose among, up to 20. Questions have the chosen one as the field `model` of their body: the server's
   * `metadata` reads it, and `callOptions` returns the model. Default: none.
   */
  readonly models?: readonly string[] | undefined;
  /** Called with what users think of answers. Default: none, and the page does not ask. */
  readonly onFeedback?: OnFeedback | undefined;
  /** The path of a JavaScript module of this site that draws results of tools: its default export has a function for each `view`. Default: none. */
  readonly renderers?: string | undefined;
  /**
   * The origins of other sites that may embed the page with `<millrace-chat>`: `['https://shop.example']`. Their users decide on tools in
   * a tab of their own. Default: none.
   */
  readonly embedIn?: readonly string[] | undefined;
  /**
   * Who says how a tool call has ended that was running when the server stopped: your `program`, or the `user`, who may then let a tool run
   * again that has already run. Default: `program`, and the card names it.
   */
  readonly uncertain?: UncertainBy | undefined;
  /**
   * The address of devtools that show the calls of the agent, with its token, such as `address$` of `createDevtools` emits it. Each answer links to
   * its call there. All users of the page get the token. Default: none.
   */
  readonly devtoolsUrl?: string | undefined;
  /** Colors of the page by name, in CSS: `{ accent: 'light-dark(#7c3aed, #c4b5fd)' }`. Default: those of the page. */
  readonly theme?: Partial<Readonly<Record<PageColor, string>>> | undefined;
}

/**
 * Adds a chat page to a chat server: `chatServer(agent, { protocols: [chatPage()] })`. The page talks to the routes for
 * clients of the AI SDK, with the cookies of its site. Its scripts and styles have names that change with their content,
 * so browsers keep them. A wrong option is a `config` error.
 */
export const chatPage = (options: ChatPageOptions = {}): ChatProtocol => {
  assertOrigins(options.embedIn);
  assertDevtools(options.devtoolsUrl);
  checkOptions('chatPage()', options, rules);
  const {
    path = '/',
    api: given = '/api',
    embedIn = [],
    onFeedback,
    uncertain = 'program',
  } = options;
  const api = given.replace(/\/+$/u, '');
  const protocol: ChatProtocol = ({ agent, masks }) => [
    ...pageRoutes({ html: documentFor(options, { agent, api, tab: '' }), assets: own, path }),
    ...(embedIn.length === 0 || script === undefined
      ? notEmbeddedRoutes(path)
      : embeddedRoutes({
          html: documentFor(options, { agent, api, tab: `{server}${path}` }),
          ...{ script, path, embedIn },
        })),
    answersRoute(api, masks),
    toolTitlesRoute(api, agent),
    ...(uncertain === 'user' ? [uncertainRoute(api)] : []),
    ...(onFeedback === undefined ? [] : [feedbackRoute(api, onFeedback)]),
  ];
  return embedIn.length === 0
    ? protocol
    : Object.assign(protocol, { assert: assertNoDecision({ path, api }) });
};

/** The error of a rule would show the address, and with it the token. */
const assertDevtools = (url: unknown): void => {
  if (
    url === undefined ||
    (typeof url === 'string' && /^https?:\/\/./u.test(url) && URL.canParse(url))
  )
    return;
  throw new MillraceError(
    'config',
    "chatPage(): 'devtoolsUrl' must be an http or https address, such as the one that devtools print.",
  );
};

/** The script for other sites, and the files of the page itself. */
const script = assets.find(({ name }) => name === scriptName);
const own = assets.filter((asset) => asset !== script);

/** The document, with its settings. */
const documentFor = (
  options: ChatPageOptions,
  place: {
    readonly agent: Agent;
    readonly api: string;
    /** The address of the page in a tab of its own, for a frame; otherwise empty. */
    readonly tab: string;
  },
): string => {
  const { starters, logo, footer, theme, renderers, agents, models, uncertain, onFeedback } =
    options;
  // The token is not for frames in other sites.
  const devtoolsUrl = place.tab === '' ? options.devtoolsUrl : undefined;
  const values = {
    title: options.title ?? place.agent.name,
    api: place.api,
    tab: place.tab,
    settings: JSON.stringify({
      ...{ starters, logo, footer, theme, renderers, agents, models, uncertain, devtoolsUrl },
      hasFeedback: onFeedback !== undefined,
    }),
  };
  return html.replaceAll(/\{(title|api|tab|settings)\}/gu, (_, name: keyof typeof values) =>
    escaped(values[name]),
  );
};

const isPath: Rule = [
  (value) => typeof value === 'string' && /^\/$|^(?:\/[\w.~-]+)*\/?$/u.test(value),
  "a path, such as '/'",
];

const rules: Readonly<Record<keyof ChatPageOptions, Rule>> = {
  title: isText,
  path: [(value) => value !== '' && isPath[0](value), isPath[1]],
  api: isPath,
  starters: [
    (value) =>
      Array.isArray(value) &&
      value.length <= 8 &&
      value.every((it) => typeof it === 'string' && it.trim() !== ''),
    'a list of up to 8 questions',
  ],
  logo: [
    (value) =>
      typeof value === 'string' &&
      /^(?:\/(?!\/)[\w.~/-]+|data:image\/[\w.+-]+[;,][^\s]*)$/u.test(value),
    "a path of this site, such as '/logo.svg', or a 'data:image/…' URL",
  ],
  footer: isText,
  agents: [
    (value) => isRecord(value) && Object.values(value).every((it) => isPath[0](it) && it !== ''),
    "paths by names, such as { Sales: '/sales/' }",
  ],
  models: [
    (value) =>
      Array.isArray(value) &&
      value.length <= 20 &&
      value.every((it) => typeof it === 'string' && it !== ''),
    'a list of up to 20 names',
  ],
  onFeedback: isFunction,
  renderers: [
    (value) => typeof value === 'string' && /^\/(?!\/)[\w.~/-]+$/u.test(value),
    "a path of this site, such as '/renderers.js'",
  ],
  embedIn: isOrigins,
  // `assertDevtools` checks it.
  devtoolsUrl: [() => true, 'an address'],
  uncertain: oneOf('program', 'user'),
  theme: [
    (value) =>
      isRecord(value) &&
      Object.entries(value).every(
        ([name, color]) =>
          colors.some((it) => it === name) &&
          typeof color === 'string' &&
          /^(?!.*url\()[#\w\s(),.%/-]{1,100}$/iu.test(color),
      ),
    `colors by name: ${colors.join(', ')}`,
  ],
};

const escaped = (text: string): string =>
  text.replaceAll(/[&<>"]/gu, (char) => `&#${String(char.codePointAt(0))};`);
