/** The JSON of an event that says what it is. */
export interface TypedEvent {
  readonly type: string;
  readonly [key: string]: unknown;
}

/** An event of a stream, without a name. */
export const sseData = (data: unknown): Buffer => Buffer.from(`data: ${JSON.stringify(data)}\n\n`);

/** An event of a stream that is named after its `type`. */
export const sseEvent = (event: TypedEvent): Buffer =>
  Buffer.from(`event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`);
