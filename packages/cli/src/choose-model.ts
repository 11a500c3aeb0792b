import { type Model, MillraceError } from '@millrace/core';
import { firstModelName } from './first-model-name.js';
import type { UsageUnit } from './presentation/describe-reply.js';

/** What a model is made from. */
export interface ModelSetting {
  /** The environment, as `process.env`. */
  readonly env: Readonly<Record<string, string | undefined>>;
  /** The model that was asked for by name. */
  readonly name: string | undefined;
  /** The time between words of a demonstration, in milliseconds. */
  readonly pace: number;
}

/** A model that the command can use. */
export interface ModelChoice {
  /** Environment variables that ask for it: one that is set is enough. Without any, it serves where no other does. */
  readonly variables: readonly string[];
  /** Makes it. What the variables hold is shown nowhere. */
  readonly factory: (setting: ModelSetting) => Promise<ChosenModel>;
}

/** The model for a run, and what a reader must know of it. */
export interface ChosenModel {
  readonly model: Model;
  /** What it is, in a few words. */
  readonly about: string;
  /** What it counts its usage in. */
  readonly unit: UsageUnit;
}

/** The models there are, in the order of preference. */
export const modelChoices: readonly ModelChoice[] = [
  {
    variables: ['OPENAI_API_KEY', 'OPENAI_BASE_URL'],
    factory: async ({ env, name }) => {
      const { openai } = await import('@millrace/openai');
      const { OPENAI_BASE_URL: baseUrl = '', OPENAI_API_KEY: apiKey } = env;
      const host = hostOf(baseUrl);
      const isAsked = name === undefined && host !== undefined && isNearby(baseUrl);
      const found = isAsked ? await firstModelName(baseUrl, apiKey) : undefined;
      const chosen = name ?? found ?? 'gpt-5-mini';
      const guess =
        isAsked && found === undefined
          ? ' (a guess: it does not say what it has; see --model)'
          : '';
      const about = `the model ${chosen} at ${host ?? 'OpenAI'}${guess}`;
      return { model: openai(chosen, given({ apiKey, baseUrl })), about, unit: 'tokens' };
    },
  },
  {
    variables: ['ANTHROPIC_API_KEY', 'ANTHROPIC_AUTH_TOKEN'],
    factory: async ({ env, name = 'claude-sonnet-4-5' }) => {
      const { anthropic } = await import('@millrace/anthropic');
      const {
        ANTHROPIC_BASE_URL: baseUrl,
        ANTHROPIC_API_KEY: key,
        ANTHROPIC_AUTH_TOKEN: token,
      } = env;
      const apiKey = key === undefined || key === '' ? token : key;
      const about = `the model ${name} at ${hostOf(baseUrl) ?? 'Anthropic'}`;
      return { model: anthropic(name, given({ apiKey, baseUrl })), about, unit: 'tokens' };
    },
  },
  {
    variables: [],
    factory: async ({ pace, name }) => {
      if (name !== undefined) {
        throw new MillraceError(
          'config',
          `There is nobody to ask for the model '${name}'. Set OPENAI_API_KEY, OPENAI_BASE_URL or ANTHROPIC_API_KEY.`,
        );
      }
      const { demoModel, demoModelDescription } = await import('@millrace/demo-model');
      const about = `the demo model: ${demoModelDescription}`;
      return { model: demoModel({ pace }), about, unit: 'words' };
    },
  },
];

/** Chooses the first model that the environment asks for. */
export const chooseModel = (
  setting: ModelSetting,
  choices: readonly ModelChoice[] = modelChoices,
): Promise<ChosenModel> => {
  const isAsked = ({ variables }: ModelChoice): boolean =>
    variables.length === 0 || variables.some((name) => (setting.env[name] ?? '') !== '');
  const chosen = choices.find(isAsked);
  return chosen === undefined
    ? Promise.reject(new Error('There is no model to choose.'))
    : chosen.factory(setting);
};

/** What is set. An empty variable is as good as none. */
const given = (
  settings: Readonly<Record<'apiKey' | 'baseUrl', string | undefined>>,
): { readonly apiKey?: string; readonly baseUrl?: string } =>
  Object.fromEntries(Object.entries(settings).filter(([, value]) => (value ?? '') !== ''));

/** Whether a server is one's own: a vendor's list begins with anything, at any price. */
const isNearby = (baseUrl: string): boolean =>
  /^(?:localhost|127\.|10\.|192\.168\.|172\.(?:1[6-9]|2\d|3[01])\.|\[::1\]|host\.docker\.internal$|[^.]+$|.*\.local$)/.test(
    new URL(baseUrl).hostname,
  );

/** Where a base URL leads, without its path and without credentials. */
const hostOf = (baseUrl = ''): string | undefined =>
  URL.canParse(baseUrl) ? new URL(baseUrl).host : undefined;
