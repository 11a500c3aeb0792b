import { describe, expect, it } from '@jest/globals';
import { toolContract } from 'millrace/testing';
import { runTool } from '../run-tool.test-support.js';
import { stockQuote } from './stock-quote.js';
import { translate } from './translate.js';
import { openVendor } from './vendor.test-support.js';
import { weather } from './weather.js';

const apiKey = 'TOP-SECRET';
const vendor = await openVendor();
const options = { baseURL: vendor.url, apiKey };
const errorOf = (ran: Promise<unknown>): Promise<unknown> => ran.catch((thrown: unknown) => thrown);

// https://www.alphavantage.co/documentation/ (GLOBAL_QUOTE), stored copy read on 2026-11-26.
const quote = {
  'Global Quote': {
    '01. symbol': 'IBM',
    '02. open': '296.1000',
    '03. high': '299.5000',
    '04. low': '295.0000',
    '05. price': '298.4000',
    '06. volume': '3114514',
    '07. latest trading day': '2026-11-25',
    '08. previous close': '295.9000',
    '09. change': '2.5000',
    '10. change percent': '0.8449%',
  },
};

describe('stock_quote', () => {
  const samples = {
    valid: [{ symbol: 'IBM' }],
    invalid: [{}, { symbol: '' }, { symbol: 'a b' }, { symbol: 'x'.repeat(21) }],
  };
  for (const { name, run } of toolContract(() => stockQuote(options), samples)) {
    it(name, () => {
      vendor.answers = { '/query': quote };
      return run();
    });
  }

  it('asks for the global quote, and returns the price', async () => {
    vendor.answers = { '/query': quote };
    const { text, output } = await runTool(stockQuote(options), { symbol: 'IBM' });
    expect(vendor.asked).toMatchObject([
      { method: 'GET', query: { function: 'GLOBAL_QUOTE', symbol: 'IBM', apikey: apiKey } },
    ]);
    expect(text).toBe(
      'IBM: 298.4000 on 2026-11-25 (2.5000, 0.8449%). Open 296.1000, high 299.5000, low 295.0000, previous close 295.9000, volume 3114514. In the currency of its exchange.',
    );
    expect(output.details).toMatchObject({ symbol: 'IBM', price: '298.4000', day: '2026-11-25' });
  });

  it.each([
    [
      {
        Information:
          'We have detected your API key as TOP-SECRET and our standard API rate limit is 25 requests per day.',
      },
      'rateLimited',
      'Alpha Vantage refused: We have detected your API key as *** and',
    ],
    [{ Note: 'Thank you for using Alpha Vantage!' }, 'rateLimited', 'refused: Thank you'],
    [{ 'Error Message': 'Invalid API call.' }, 'invalidRequest', 'refused: Invalid API call'],
    [{ 'Global Quote': {} }, 'invalidRequest', "has no stock with the symbol 'NOPE'"],
  ])('reports %j', async (answer, code, message) => {
    vendor.answers = { '/query': answer };
    const error = await errorOf(runTool(stockQuote(options), { symbol: 'NOPE' }));
    expect(error).toMatchObject({ code, message: expect.stringContaining(message) });
    expect(String(error)).not.toContain(apiKey);
  });
});

// https://developers.deepl.com/docs/api-reference/translate/openapi-spec-for-text-translation, stored copy read on 2026-11-26.
const translation = { translations: [{ detected_source_language: 'EN', text: 'Hallo, Welt!' }] };

describe('translate', () => {
  const samples = {
    valid: [{ text: 'Hello', to: 'DE' }],
    invalid: [
      {},
      { text: '', to: 'DE' },
      { text: 'x', to: 'German' },
      { text: 'x', to: 'DE', from: 'x' },
    ],
  };
  vendor.answers = { '/v2/translate': translation };
  for (const { name, run } of toolContract(() => translate(options), samples)) {
    it(name, () => {
      vendor.answers = { '/v2/translate': translation };
      return run();
    });
  }

  it('sends the text, and returns the translation', async () => {
    vendor.answers = { '/v2/translate': translation };
    const { text, output } = await runTool(translate(options), {
      text: 'Hello, world!',
      to: 'de',
      from: 'en',
    });
    expect(vendor.asked).toMatchObject([
      {
        method: 'POST',
        headers: { authorization: `DeepL-Auth-Key ${apiKey}` },
        body: { text: ['Hello, world!'], target_lang: 'DE', source_lang: 'EN' },
      },
    ]);
    expect(text).toBe('Hallo, Welt!');
    expect(output.details).toEqual({ from: 'EN', to: 'DE', text: 'Hallo, Welt!' });
  });

  it('reports a used quota, and an answer without a translation', async () => {
    vendor.answers = {
      '/v2/translate': (response) =>
        void response.writeHead(456).end('{"message":"Quota exceeded"}'),
    };
    expect(await errorOf(runTool(translate(options), { text: 'x', to: 'DE' }))).toMatchObject({
      code: 'rateLimited',
      message: 'DeepL answered with the status 456: Quota exceeded.',
    });
    vendor.answers = { '/v2/translate': {} };
    expect(await errorOf(runTool(translate(options), { text: 'x', to: 'DE' }))).toMatchObject({
      code: 'invalidResponse',
    });
  });
});

// https://open-meteo.com/en/docs and /en/docs/geocoding-api, by stored descriptions of them read on 2026-11-26.
const openMeteo = {
  '/v1/search': {
    results: [
      {
        id: 3143244,
        name: 'Oslo',
        latitude: 59.91273,
        longitude: 10.74609,
        country: 'Norway',
        admin1: 'Oslo County',
        timezone: 'Europe/Oslo',
      },
    ],
    generationtime_ms: 0.5,
  },
  '/v1/forecast': {
    latitude: 59.91,
    longitude: 10.75,
    current_units: { temperature_2m: '°C', wind_speed_10m: 'km/h' },
    current: {
      time: '2026-11-26T17:00',
      interval: 900,
      temperature_2m: -2.5,
      apparent_temperature: -7,
      relative_humidity_2m: 80,
      precipitation: 0,
      weather_code: 71,
      wind_speed_10m: 12.3,
    },
    daily: {
      time: ['2026-11-26', '2026-11-27'],
      weather_code: [73, 3],
      temperature_2m_max: [-1, 0.5],
      temperature_2m_min: [-6, null],
      precipitation_sum: [3.2, 0],
    },
  },
};

// https://dev.qweather.com/en/docs/api/geoapi/city-lookup, stored copy read on 2026-11-26; weather-now and
// weather-daily-forecast by public clients.
const qweather = {
  '/geo/v2/city/lookup': {
    code: '200',
    location: [
      {
        name: 'Beijing',
        id: '101010100',
        lat: '39.90499',
        lon: '116.40529',
        adm2: 'Beijing',
        adm1: 'Beijing',
        country: 'China',
      },
    ],
  },
  '/v7/weather/now': {
    code: '200',
    updateTime: '2026-11-26T17:00+08:00',
    now: {
      obsTime: '2026-11-26T16:50+08:00',
      temp: '24',
      feelsLike: '26',
      icon: '101',
      text: 'Cloudy',
      windSpeed: '3',
      humidity: '72',
      precip: '0.0',
    },
  },
  '/v7/weather/3d': {
    code: '200',
    daily: [
      { fxDate: '2026-11-26', tempMax: '12', tempMin: '-1', textDay: 'Sunny', precip: '0.0' },
      { fxDate: '2026-11-27', tempMax: '13', tempMin: '0', textDay: 'Rain', precip: '4.2' },
      { fxDate: '2026-11-28', tempMax: '14', tempMin: '1', textDay: 'Rain', precip: '1.0' },
    ],
  },
};

describe('weather', () => {
  const samples = {
    valid: [{ place: 'Oslo' }, { place: 'Oslo', days: 7 }],
    invalid: [{}, { place: 'x' }, { place: 'Oslo', days: 0 }, { place: 'Oslo', days: 8 }],
  };
  for (const { name, run } of toolContract(
    () => weather({ provider: 'open-meteo', baseURL: vendor.url }),
    samples,
  )) {
    it(name, () => {
      vendor.answers = openMeteo;
      return run();
    });
  }

  it('asks Open-Meteo for the place, then for its weather', async () => {
    vendor.answers = openMeteo;
    const tool = weather({ provider: 'open-meteo', baseURL: vendor.url });
    const { text, output } = await runTool(tool, { place: 'Oslo', days: 2 });
    expect(vendor.asked).toMatchObject([
      { path: '/v1/search', query: { name: 'Oslo', count: '1' } },
      {
        path: '/v1/forecast',
        query: {
          latitude: '59.91273',
          longitude: '10.74609',
          forecast_days: '2',
          timezone: 'auto',
          current: expect.stringContaining('weather_code'),
        },
      },
    ]);
    expect(vendor.asked[1]?.query).not.toHaveProperty('apikey');
    expect(text).toBe(
      `Oslo, Oslo County, Norway
Now (2026-11-26T17:00): light snow, -2.5 °C, feels like -7 °C, humidity 80%, wind 12.3 km/h, precipitation 0 mm
2026-11-26: snow, -6 °C at night, up to -1 °C, precipitation 3.2 mm
2026-11-27: overcast, up to 0.5 °C, precipitation 0 mm`,
    );
    expect(output.details).toMatchObject({
      place: 'Oslo, Oslo County, Norway',
      now: { temperature: -2.5 },
      days: [{ high: -1 }, { low: null }],
    });
  });

  it('is as short as requested, no matter what the service answers', async () => {
    const long = { current: { time: 'x'.repeat(9_000) }, daily: { time: Array(9_000).fill('y') } };
    vendor.answers = {
      '/v1/search': { results: [{ name: 'Oslo', latitude: 1, longitude: 2 }] },
      '/v1/forecast': long,
    };
    const short = weather({ provider: 'open-meteo', ...options });
    const { text, output } = await runTool(short, { place: 'Oslo', days: 2 });
    expect(text.length).toBeLessThan(200);
    expect(Object(output.details).days).toHaveLength(2);
    vendor.answers = {
      ...vendor.answers,
      '/v1/forecast': { current: { time: 'now' }, daily: { time: Array(7).fill('a'.repeat(50)) } },
    };
    const cut = weather({ provider: 'open-meteo', ...options, maxLength: 200 });
    expect((await runTool(cut, { place: 'Oslo', days: 7 })).text).toHaveLength(200);
  });

  it('asks QWeather with the key in a header', async () => {
    vendor.answers = qweather;
    const tool = weather({ provider: 'qweather', ...options });
    const { text } = await runTool(tool, { place: 'Beijing', days: 2 });
    expect(
      vendor.asked.map(({ path, query, headers }) => [
        path,
        query['location'],
        headers['x-qw-api-key'],
      ]),
    ).toEqual([
      ['/geo/v2/city/lookup', 'Beijing', apiKey],
      ...['now', '3d'].map((it) => [`/v7/weather/${it}`, '101010100', apiKey]),
    ]);
    expect(text).toBe(
      `Beijing, China
Now (2026-11-26T16:50+08:00): Cloudy, 24 °C, feels like 26 °C, humidity 72%, wind 3 km/h, precipitation 0 mm
2026-11-26: Sunny, -1 °C at night, up to 12 °C, precipitation 0 mm
2026-11-27: Rain, 0 °C at night, up to 13 °C, precipitation 4.2 mm`,
    );
    await errorOf(runTool(tool, { place: 'Beijing', days: 5 }));
    expect(vendor.asked.at(-1)?.path).toBe('/v7/weather/7d');
  });

  it.each([
    [
      'open-meteo',
      { '/v1/search': { generationtime_ms: 0.5 } },
      'invalidRequest',
      "Open-Meteo has no place called 'Nowhere'.",
    ],
    [
      'qweather',
      { '/geo/v2/city/lookup': { code: '404' } },
      'invalidRequest',
      "QWeather has no place called 'Nowhere'.",
    ],
    ['qweather', { '/geo/v2/city/lookup': { code: '429' } }, 'rateLimited', 'the code 429'],
    ['qweather', { '/geo/v2/city/lookup': { code: '401' } }, 'invalidRequest', 'the code 401'],
  ] as const)('reports the failure of %s', async (provider, answers, code, message) => {
    vendor.answers = answers;
    expect(
      await errorOf(runTool(weather({ provider, ...options }), { place: 'Nowhere' })),
    ).toMatchObject({ code, message: expect.stringContaining(message) });
  });

  it('needs a host and a key for QWeather', () => {
    expect(() => weather({ provider: 'qweather', apiKey })).toThrow('QWEATHER_API_HOST');
    expect(() => weather({ provider: 'qweather', baseURL: vendor.url })).toThrow(
      'QWEATHER_API_KEY',
    );
    expect(() => weather({ provider: 'other' } as never)).toThrow("'provider' must be");
  });
});
