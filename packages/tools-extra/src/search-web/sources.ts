import { type MillraceError, toolOutput, type ToolOutput } from 'millrace';
import { jsonSchema } from 'millrace/schema';
import { oneLine, reasonOf, type Service, serviceError, withoutTags } from '../services/service.js';

/** A page or paper that a search has found. */
export interface Source {
  readonly title: string;
  /** With `http:` or `https:`. */
  readonly url: string;
  readonly text: string;
  /** The date, the authors and the like, or `''`. */
  readonly note: string;
}

export const queryInput = (description: string, ...examples: readonly string[]) =>
  jsonSchema({
    type: 'object',
    properties: {
      query: { type: 'string', minLength: 1, maxLength: 400, description, examples },
    },
    required: ['query'],
    additionalProperties: false,
  });

/** The error for a search that a service refuses for a reason of its own. */
export const refusal = (service: Service, reason: string): MillraceError =>
  serviceError(service, 'invalidRequest', `refused: ${reasonOf(service, reason, 300)}`);

/** Cleans what a service has found. Sources without a title, and with other URLs, are left out. */
export const sourcesOf = (
  found: readonly Source[],
  maxText: number,
  maxSources: number,
): readonly Source[] =>
  found
    .filter(({ url }) => URL.canParse(url) && /^https?:$/u.test(new URL(url).protocol))
    .map(({ title, url, text, note }) => ({
      title: oneLine(withoutTags(title), 200),
      url: new URL(url).href.slice(0, 2_000),
      text: oneLine(withoutTags(text), maxText),
      note: oneLine(note, 200),
    }))
    .filter(({ title }) => title !== '')
    .slice(0, maxSources);

/** Numbers the sources, as many as fit. `details` has all of them. */
export const sourcesOutput = (sources: readonly Source[], maxLength: number): ToolOutput => {
  if (sources.length === 0) {
    return toolOutput({
      content: 'Nothing was found. Try other or fewer words.',
      details: { sources },
    });
  }
  const room = { left: maxLength };
  const shown = sources
    .map(({ title, url, text, note }, index) =>
      [`${index + 1}. ${title}`, url, note, text].filter((line) => line !== '').join('\n   '),
    )
    .filter((entry, index) => {
      room.left -= entry.length + 1;
      return room.left >= 0 || index === 0;
    })
    .map((entry) => entry.slice(0, maxLength));
  return toolOutput({ content: shown.join('\n'), details: { sources } });
};
