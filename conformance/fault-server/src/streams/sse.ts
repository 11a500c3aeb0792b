/** One event of a stream, with an empty line behind it. Without a name, it has only data. */
export const sse = (data: unknown, name?: string): string =>
  `${name === undefined ? '' : `event: ${name}\n`}data: ${JSON.stringify(data)}\n\n`;
