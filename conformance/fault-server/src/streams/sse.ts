/** The data of an event, if it is an object. Only LF ends a line: `.` and `$` of a pattern also stop before U+2028. */
export const dataLine = /(?<=^|\n)data: (\{[^\n]*)/gu;

/** The value that `sse` wrote as the data of an event. */
export const dataOf = (event: string): unknown =>
  JSON.parse(event.slice(event.indexOf('data: ') + 'data: '.length));

/** One event of a stream, with an empty line behind it. Without a name, it has only data. */
export const sse = (data: unknown, name?: string): string =>
  `${name === undefined ? '' : `event: ${name}\n`}data: ${JSON.stringify(data)}\n\n`;
