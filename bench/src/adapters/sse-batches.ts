/**
 * Reads the events of a stream by hand, as people do: the JSON of each `data:`, in batches of one network read. Lines with the name
 * of an event and `[DONE]` are passed over.
 */
export async function* sseBatches<Event>(
  body: ReadableStream<Uint8Array>,
): AsyncGenerator<readonly Event[]> {
  const parse: (json: string) => Event = JSON.parse;
  const decoder = new TextDecoder();
  let rest = '';
  for await (const bytes of body) {
    rest += decoder.decode(bytes, { stream: true });
    const batch: Event[] = [];
    let from = 0;
    for (let end = rest.indexOf('\n\n'); end !== -1; end = rest.indexOf('\n\n', from)) {
      const start = rest.startsWith('data: ', from) ? from : rest.indexOf('\ndata: ', from) + 1;
      const data = rest.slice(start + 6, end);
      if (data !== '[DONE]') batch.push(parse(data));
      from = end + 2;
    }
    rest = rest.slice(from);
    yield batch;
  }
}
