// A synthetic table of pumps with a few anomalies, for a first try without a file.

export function exampleFile() {
  let state = 7;
  const random = () => {
    state = (state * 48271) % 2147483647;
    return state / 2147483647;
  };
  const normal = () => Math.sqrt(-2 * Math.log(random())) * Math.cos(2 * Math.PI * random());
  const lines = ['pump,site,speed,flow,pressure,temperature,bearing,shift'];
  for (let i = 0; i < 600; i += 1) {
    const site = ['harbour', 'mill', 'valley'][Math.floor(random() * 3)];
    let speed = 1450 + 120 * normal();
    let flow = speed * 0.042 + 0.8 * normal();
    const pressure = 2.1 + flow * 0.035 + 0.06 * normal();
    let temperature = 38 + (speed - 1450) * 0.02 + 1.5 * normal();
    let bearing = ['ceramic', 'steel'][site === 'mill' ? 0 : 1];
    if (i % 97 === 40) flow *= 0.55; // a leak
    if (i % 131 === 70) temperature += 22; // running hot
    if (i === 333) bearing = 'wood';
    if (i === 512) speed = 2400;
    lines.push(
      [
        `P-${1000 + i}`,
        site,
        speed.toFixed(0),
        random() < 0.02 ? '' : flow.toFixed(2),
        pressure.toFixed(3),
        temperature.toFixed(1),
        bearing,
        random() < 0.7 ? 'day' : 'night',
      ].join(','),
    );
  }
  return new File([`${lines.join('\n')}\n`], 'pumps.csv', { type: 'text/csv' });
}
