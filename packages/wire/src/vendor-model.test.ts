import { describe, expect, it, jest } from '@jest/globals';
import type { ModelChunk, ModelReport, ModelRequest } from '@millrace/core';
import { lentContext, modelContract } from '@millrace/core/testing';
import { lastValueFrom, toArray, VirtualTimeScheduler } from 'rxjs';
import type { Exchange } from './exchange.js';
import type { VendorSettings } from './settings.js';
import { vendorModel } from './vendor-model.js';
import { event, exchangeWith, finishEvent, respond, textEvent } from './wire.test-support.js';

const request: ModelRequest = { messages: [] };

const model = (send: Exchange['send'], settings?: VendorSettings) =>
  vendorModel({ name: 'acme-1', exchange: () => exchangeWith(send) }, settings);

const busy = respond([], { status: 503 });
const good = respond([textEvent('Hello') + finishEvent]);

describe('vendorModel', () => {
  it.each(modelContract(() => model(good)))('$name', ({ run }) => run());

  it('C4: sends a request again where that may help, and reports it', async () => {
    const scheduler = new VirtualTimeScheduler();
    const send = jest.fn<Exchange['send']>().mockImplementationOnce(busy).mockImplementation(good);
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

  it('X3: gives a silent vendor up after 10 minutes, or what the settings say', async () => {
    const silent = () => new Promise<Response>(() => undefined);
    for (const [timeouts, ms] of [
      [undefined, 600_000],
      [{ firstChunkMs: undefined, chunkMs: undefined }, 600_000],
      [{ firstChunkMs: 7 }, 7],
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
    const made = vendorModel(
      {
        name: 'acme-1',
        unsupported: ['temperature'],
        exchange: () => exchangeWith(respond([event({ type: 'text', text: 'too long' })])),
      },
      { caps: { textLength: 3 } },
    );
    expect(made).toMatchObject({ name: 'acme-1', unsupported: ['temperature'] });
    const answer$ = made.stream$(request, lentContext());
    await expect(lastValueFrom(answer$)).rejects.toThrow('caps.textLength');
    expect(() => model(good, { caps: { depth: -1 } })).toThrow("'depth'");
  });
});
