import { MillraceError, tool, type Tool, toolOutput } from '@millrace/core';
import { jsonSchema } from '@millrace/core/schema';
import { createFindTimeZone } from './find-time-zone.js';
import { tellTime } from './tell-time.js';
import { namedZone, offsetZone } from './time-zone.js';

/** What `clock` can be told. */
export interface ClockOptions {
  /** The zone of the time when no place is asked for: an IANA name or an offset. Default: the machine's. */
  readonly timeZone?: string;
}

/**
 * Makes the tool `clock`: date and time, here or in a city, a country or a time zone.
 *
 * The time is that of the call's scheduler, so tests set it; cities, countries and daylight saving time are
 * those that `Intl` knows. A place that is unknown, or has several zones, is an error that names near ones.
 */
export const clock = (options: ClockOptions = {}): Tool => {
  const local = options.timeZone ?? new Intl.DateTimeFormat().resolvedOptions().timeZone;
  const here = offsetZone(local) ?? namedZone(local);
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
      'Tells the current date, weekday and time, here or in any city, country or time zone. ' +
      'Use it whenever the answer depends on what day or what time it is now.',
    input: jsonSchema({
      type: 'object',
      properties: {
        place: {
          type: 'string',
          maxLength: 100,
          description:
            'The city, country, IANA time zone or UTC offset to tell the time for. Leave it out for the local time.',
          examples: ['Tokyo', 'New York', 'Europe/Berlin', 'UTC+2'],
        },
      },
      additionalProperties: false,
    }),
    run: ({ place = '' }, { scheduler }) => {
      const now = scheduler.now();
      const asked = /^\s*(?:here|local(?: time)?)\s*$/iu.test(place) ? '' : place.trim();
      const zone = asked === '' ? here : findTimeZone(asked, now);
      const { text, ...details } = tellTime(now, zone, asked);
      return toolOutput({ content: text, details });
    },
  });
};
