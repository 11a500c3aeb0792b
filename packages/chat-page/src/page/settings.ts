import { fieldsOf, listOf, optional, textOf } from './fields.js';

/** The choices of the server for its page. */
export interface Settings {
  readonly starters: readonly string[];
  readonly logo?: string;
  readonly footer?: string;
  /** The pages of agents, by their names. */
  readonly agents: Readonly<Record<string, string>>;
  readonly models: readonly string[];
  /** The module that draws results of tools. */
  readonly renderers?: string;
  /** Whether users may say what they think of answers. */
  readonly hasFeedback: boolean;
  /** The address of devtools, with its token. */
  readonly devtoolsUrl?: string;
  /** Who says how a tool call has ended that was running when the server stopped. */
  readonly uncertain: 'user' | 'program';
  /** In a frame of another site: the address of the page in a tab of its own, where users decide. */
  readonly tab?: string;
  /** Colors by name. */
  readonly theme: Readonly<Record<string, string>>;
}

/** Reads the settings of a page. What is missing or not valid has its default. */
export const settingsOf = (json: string | undefined): Settings => {
  const { starters, logo, footer, theme, renderers, agents, models, ...rest } = fieldsOf(
    parsed(json),
  );
  const { hasFeedback, uncertain, devtoolsUrl } = rest;
  return {
    starters: listOf(starters).map(textOf).filter(Boolean),
    ...optional('logo', logo),
    ...optional('footer', footer),
    ...optional('renderers', renderers),
    ...optional('devtoolsUrl', devtoolsUrl),
    hasFeedback: hasFeedback === true,
    uncertain: uncertain === 'user' ? uncertain : 'program',
    theme: textsOf(theme),
    agents: textsOf(agents),
    models: listOf(models).map(textOf).filter(Boolean),
  };
};

const textsOf = (value: unknown): Readonly<Record<string, string>> =>
  Object.fromEntries(Object.entries(fieldsOf(value)).map(([name, it]) => [name, textOf(it)]));

const parsed = (json = '{}'): unknown => {
  try {
    return JSON.parse(json);
  } catch {
    return {};
  }
};
