import { type Model, MillraceError } from 'millrace';
import { firstModelName } from './first-model-name.js';
import type { UsageUnit } from './presentation/describe-reply.js';

/** The configuration of a model. */
export interface ModelSetting {
  /** The environment, as `process.env`. */
  readonly env: Readonly<Record<string, string | undefined>>;
  /** The name of the model, if the user gave one. */
  readonly name: string | undefined;
  /** The time between words of the demo model, in milliseconds. */
  readonly pace: number;
}

/** A model that the command can use. */
export interface ModelChoice {
  /** Environment variables that select it: any one of them is enough. A choice without variables is the fallback. */
  readonly variables: readonly string[];
  /** Creates the model. Must not reveal the values of the variables. */
  readonly factory: (setting: ModelSetting) => Promise<ChosenModel>;
}

/** The model for a run, with its description. */
export interface ChosenModel {
  readonly model: Model;
  /** A short description. */
  readonly about: string;
  /** The unit of its usage. */
  readonly unit: UsageUnit;
}

/** The available models, in order of preference. */
export const modelChoices: readonly ModelChoice[] = [
  {
    variables: ['OPENAI_API_KEY', 'OPENAI_BASE_URL'],
    factory: async ({ env, name }) => {
      const { openai } = await import('@millrace/openai');
      const { OPENAI_BASE_URL: baseURL = '', OPENAI_API_KEY: apiKey } = env;
      const host = hostOf(baseURL);
      const isAsked = name === undefined && host !== undefined && isLocal(baseURL);
      const found = isAsked ? await firstModelName(baseURL, apiKey) : undefined;
      const chosen = name ?? found ?? 'gpt-5-mini';
      const guess =
        isAsked && found === undefined
          ? ' (a guess: the endpoint does not list its models; see --model)'
          : '';
      const about = `the model ${chosen} at ${host ?? 'OpenAI'}${guess}`;
      return { model: openai(chosen, given({ apiKey, baseURL })), about, unit: 'tokens' };
    },
  },
  {
    variables: ['ANTHROPIC_API_KEY', 'ANTHROPIC_AUTH_TOKEN'],
    factory: async ({ env, name = 'claude-sonnet-4-5' }) => {
      const { anthropic } = await import('@millrace/anthropic');
      const {
        ANTHROPIC_BASE_URL: baseURL,
        ANTHROPIC_API_KEY: key,
        ANTHROPIC_AUTH_TOKEN: token,
      } = env;
      const apiKey = key === undefined || key === '' ? token : key;
      const about = `the model ${name} at ${hostOf(baseURL) ?? 'Anthropic'}`;
      return { model: anthropic(name, given({ apiKey, baseURL })), about, unit: 'tokens' };
    },
  },
  {
    variables: [],
    factory: async ({ pace, name }) => {
      if (name !== undefined) {
        throw new MillraceError(
          'config',
          `No provider is configured for the model '${name}'. Set OPENAI_API_KEY, OPENAI_BASE_URL or ANTHROPIC_API_KEY.`,
        );
      }
      const { demoModel, demoModelDescription } = await import('@millrace/demo-model');
      const about = `the demo model: ${demoModelDescription}`;
      return { model: demoModel({ pace }), about, unit: 'words' };
    },
  },
];

/** Chooses the first model that the environment selects. */
export const chooseModel = (
  setting: ModelSetting,
  choices: readonly ModelChoice[] = modelChoices,
): Promise<ChosenModel> => {
  const isAsked = ({ variables }: ModelChoice): boolean =>
    variables.length === 0 || variables.some((name) => (setting.env[name] ?? '') !== '');
  const chosen = choices.find(isAsked);
  return chosen === undefined
    ? Promise.reject(new Error('No model is available.'))
    : chosen.factory(setting);
};

/** The values that are set. An empty variable counts as not set. */
const given = (
  settings: Readonly<Record<'apiKey' | 'baseURL', string | undefined>>,
): { readonly apiKey?: string; readonly baseURL?: string } =>
  Object.fromEntries(Object.entries(settings).filter(([, value]) => (value ?? '') !== ''));

/** Whether a server is on a local network. The first model of a vendor's list could be any, at any price. */
const isLocal = (baseURL: string): boolean =>
  /^(?:localhost|127\.|10\.|192\.168\.|172\.(?:1[6-9]|2\d|3[01])\.|\[::1\]|host\.docker\.internal$|[^.]+$|.*\.local$)/.test(
    new URL(baseURL).hostname,
  );

/** The host of a base URL, without path and credentials. */
const hostOf = (baseURL = ''): string | undefined =>
  URL.canParse(baseURL) ? new URL(baseURL).host : undefined;
