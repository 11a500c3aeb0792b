import { MillraceError } from 'millrace';
import { messageOf } from 'millrace/values';
import { Cron } from 'croner';

/** The times of a cron expression, in milliseconds since the epoch. */
export interface CronTimes {
  /** The first time after another one; `undefined` after the last one. */
  readonly after: (ms: number) => number | undefined;
}

/** Reads a cron expression. Throws `config`, with what is wrong with it or its time zone. */
export const readCron = (expression: string, timeZone: string | undefined): CronTimes => {
  const refused = (cause: unknown): MillraceError =>
    new MillraceError(
      'config',
      `schedule() cannot read the cron expression '${expression.slice(0, 200)}'${timeZone === undefined ? '' : ` in the time zone '${timeZone.slice(0, 100)}'`}: ${messageOf(cause)} Write minute, hour, day, month and weekday, such as '0 9 * * 1-5'.`,
      { cause },
    );
  try {
    // Croner starts no timer without a function.
    const cron = new Cron(expression, timeZone === undefined ? {} : { timezone: timeZone });
    // It reads a time zone when it needs one.
    cron.nextRun();
    let last: { readonly from: number; readonly at: number } | undefined;
    return {
      after: (ms) => {
        // A schedule asks again at each look at its store.
        if (last !== undefined && last.from <= ms && ms < last.at) return last.at;
        const at = cron.nextRun(new Date(ms))?.getTime();
        last = at === undefined ? undefined : { from: ms, at };
        return at;
      },
    };
  } catch (cause) {
    throw refused(cause);
  }
};
