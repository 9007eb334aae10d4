// Fills the page and ties the slider to everything that depends on the alarm level.

byId('title').textContent = data.title;
byId('subtitle').textContent = `${data.table}, judged by ${data.model} · ${data.made}`;
byId('headline').textContent = headline();
cards(byId('cards'));
learned(byId('learned'));

const moveChart = scoreChart(byId('score-chart'));
byId('top-note').textContent = `The ${plural(top.rows.length, 'row', 'rows')} with the highest scores; rows are counted from 0. The redder a cell, the more of the score it causes. `
  + `Choose a row to see ${data.values_shown ? 'what was expected instead' : 'its reasons'}, or a heading to sort.${data.values_shown ? '' : ' Values were left out of this report on purpose.'}`;
const markRows = rowTable(byId('top'));

const slider = byId('threshold');
slider.max = scores.edges.length - 1;
slider.value = scores.threshold_index;
function update() {
  const index = Number(slider.value);
  moveChart(index);
  markRows(index);
  byId('threshold-text').textContent = thresholdText(index);
  slider.setAttribute('aria-valuetext', `score ${short(scores.edges[index])}, ${plural(strangeBeyond[index], 'strange row', 'strange rows')}`);
}
slider.addEventListener('input', update);
byId('reset').addEventListener('click', () => { slider.value = scores.threshold_index; update(); });
update();

drivers(byId('drivers'));
drift(byId('drift'));
synthetic(byId('synthetic'));
history(byId('history'));
byId('settings').append(pairs(Object.entries(data.versions)), folded('All settings of the model', pairs(data.settings)));
if (scores.labelled && scores.labelled.auc !== null) {
  byId('cards').append(make('div', { class: 'card' }, make('b', { text: percent(scores.labelled.auc) }), make('span', { text: 'of pairs of a known anomaly and a normal row are ranked rightly (AUC-ROC)' })));
}
byId('footer').textContent = `Made by ptad ${data.versions.ptad}. This page is one file and uses no network. ${data.values_shown ? 'It quotes rows of the table: treat it as you treat the table.' : 'It quotes no values of the table.'}`;
