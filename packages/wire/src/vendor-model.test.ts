import { describe, expect, it, jest } from '@jest/globals';
import type { ModelChunk, ModelReport, ModelRequest } from 'millrace';
import { lentContext, modelContract } from 'millrace/testing';
import { lastValueFrom, tap, toArray, VirtualTimeScheduler } from 'rxjs';
import { defaultCaps } from './caps.js';
import type { VendorSettings } from './settings.js';
import { vendorModel } from './vendor-model.js';
import {
  event,
  exchangeWith,
  finishEvent,
  respond,
  type Send,
  textEvent,
} from './wire.test-support.js';

const request: ModelRequest = { messages: [] };

const model = (send: Send, settings?: VendorSettings) => {
  const exchange = exchangeWith(send);
  return vendorModel(
    { name: 'acme-1', exchange: () => exchange },
    { fetch: exchange.fetch, ...settings },
  );
};

const busy = respond([], { status: 503 });
const good = respond([textEvent('Hello') + finishEvent]);

describe('vendorModel', () => {
  it.each(modelContract(() => model(good)))('$name', ({ run }) => run());

  it('C4: sends a request again if that may help, and reports it', async () => {
    const scheduler = new VirtualTimeScheduler();
    const send = jest.fn<Send>().mockImplementationOnce(busy).mockImplementation(good);
    const reports: ModelReport[] = [];
    const chunks: ModelChunk[] = [];
    const answered = new Promise<void>((complete) =>
      model(send)
        .stream$(
          request,
          lentContext({
            scheduler,
            report: (report) => {
              reports.push(report);
              // The wait, and not the time-out of the attempt behind it.
              scheduler.maxFrames = 10_000;
              setImmediate(() => scheduler.flush());
            },
          }),
        )
        .subscribe({ next: (chunk) => chunks.push(chunk), complete }),
    );
    await answered;
    expect(send).toHaveBeenCalledTimes(2);
    expect(reports).toMatchObject([{ type: 'modelRetry', attempt: 1, error: { code: 'server' } }]);
    expect(chunks).toHaveLength(2);
  });

  it('C4: sends it once where retry is false', async () => {
    const send = jest.fn(busy);
    const answer$ = model(send, { retry: false }).stream$(request, lentContext());
    await expect(lastValueFrom(answer$)).rejects.toMatchObject({ code: 'server' });
    expect(send).toHaveBeenCalledTimes(1);
  });

  it('C5, X3: times out a vendor without content after 2 minutes, or after what the settings say', async () => {
    const silent = () => new Promise<Response>(() => undefined);
    for (const [timeouts, ms] of [
      [undefined, 120_000],
      [{ firstChunkMs: undefined, chunkMs: undefined }, 120_000],
      [{ firstChunkMs: 7 }, 7],
      [{ firstChunkMs: 600_000 }, 600_000],
    ] as const) {
      const scheduler = new VirtualTimeScheduler();
      const settings = { retry: false, timeouts } as VendorSettings;
      const answer$ = model(silent, settings).stream$(request, lentContext({ scheduler }));
      const failed = expect(lastValueFrom(answer$)).rejects.toMatchObject({ code: 'timeout' });
      scheduler.flush();
      await failed;
      expect(scheduler.now()).toBe(ms);
    }
  });

  it('C5, X3: times out a vendor that stops after some content after 60 seconds, or after what the settings say', async () => {
    for (const [timeouts, ms] of [
      [undefined, 60_000],
      [{ chunkMs: 600_000 }, 600_000],
    ] as const) {
      const scheduler = new VirtualTimeScheduler();
      const stalls = () =>
        Promise.resolve(
          new Response(
            new ReadableStream({
              start: (controller) =>
                controller.enqueue(new TextEncoder().encode(textEvent('Hello'))),
            }),
          ),
        );
      const answer$ = model(stalls, { retry: false, timeouts }).stream$(
        request,
        lentContext({ scheduler }),
      );
      const failed = lastValueFrom(answer$.pipe(tap(() => setImmediate(() => scheduler.flush()))));
      await expect(failed).rejects.toMatchObject({ code: 'timeout' });
      expect(scheduler.now()).toBe(ms);
    }
  });

  it('X6: takes text of 1,000,000 characters, and no more', async () => {
    expect(defaultCaps).toMatchObject({ textLength: 1_000_000, argumentLength: 1_000_000 });
    const lengthOf = async (length: number): Promise<unknown> => {
      const send = respond([textEvent('x'.repeat(length)) + finishEvent]);
      const chunks = await lastValueFrom(
        model(send).stream$(request, lentContext()).pipe(toArray()),
      );
      return chunks.length;
    };
    expect(await lengthOf(1_000_000)).toBe(2);
    await expect(lengthOf(1_000_001)).rejects.toMatchObject({
      code: 'tooLarge',
      message: expect.stringContaining('caps.textLength'),
    });
  });

  it('passes on what the mapping throws, and sends nothing', async () => {
    const broken = vendorModel({
      name: 'acme-1',
      exchange: () => {
        throw new TypeError('cannot map');
      },
    });
    const answer$ = broken.stream$(request, lentContext()).pipe(toArray());
    await expect(lastValueFrom(answer$)).rejects.toThrow('cannot map');
  });

  it('has a name, what it cannot take, and caps', async () => {
    const exchange = exchangeWith(respond([event({ type: 'text', text: 'too long' })]));
    const made = vendorModel(
      { name: 'acme-1', unsupported: ['temperature'], exchange: () => exchange },
      { fetch: exchange.fetch, caps: { textLength: 3 } },
    );
    expect(made).toMatchObject({ name: 'acme-1', unsupported: ['temperature'] });
    const answer$ = made.stream$(request, lentContext());
    await expect(lastValueFrom(answer$)).rejects.toThrow('caps.textLength');
    expect(() => model(good, { caps: { depth: -1 } })).toThrow("'depth'");
  });
});
