import { MillraceError, tool, type Tool, toolOutput } from 'millrace';
import { jsonSchema } from 'millrace/schema';
import { describeTime } from './describe-time.js';
import { createFindTimeZone } from './find-time-zone.js';
import { ianaZone, offsetZone } from './time-zone.js';

/** Options of `clock`. */
export interface ClockOptions {
  /** The time zone if the model names no place: an IANA name or an offset. Default: that of the machine. */
  readonly timeZone?: string | undefined;
}

/**
 * Creates the tool `clock`: date and time, here or in a city, a country or a time zone.
 *
 * It uses the scheduler of the call, so tests can set the time. Cities, countries and daylight saving time come from
 * `Intl`. An unknown place, or one with several time zones, is an error with suggestions.
 */
export const clock = (options: ClockOptions = {}): Tool => {
  const local = options.timeZone ?? new Intl.DateTimeFormat().resolvedOptions().timeZone;
  const here = offsetZone(local) ?? ianaZone(local);
  if (here === undefined) {
    throw new MillraceError(
      'config',
      `clock(): there is no time zone '${local}'. Use a name such as 'Europe/Berlin'.`,
    );
  }
  const findTimeZone = createFindTimeZone();
  return tool({
    name: 'clock',
    idempotent: true,
    description:
      'Returns the current date, weekday and time, here or in any city, country or time zone. ' +
      'Use it whenever the answer depends on what day or what time it is now.',
    input: jsonSchema({
      type: 'object',
      properties: {
        place: {
          type: 'string',
          maxLength: 100,
          description:
            'A city, country, IANA time zone or UTC offset. Leave it out for the local time.',
          examples: ['Tokyo', 'New York', 'Europe/Berlin', 'UTC+2'],
        },
      },
      additionalProperties: false,
    }),
    run: ({ place = '' }, { scheduler }) => {
      const now = scheduler.now();
      const name = /^\s*(?:here|local(?: time)?)\s*$/iu.test(place) ? '' : place.trim();
      const zone = name === '' ? here : findTimeZone(name, now);
      const { text, ...details } = describeTime(now, zone, name);
      return toolOutput({ content: text, details });
    },
  });
};
