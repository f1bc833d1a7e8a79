"""The forms' looks: plain CSS, in the colours of the front end where it names them."""

from __future__ import annotations

CSS = """
.nbext-form, .nbext-snapshot {
  --nb-line: var(--jp-border-color2, #d8dde4);
  --nb-text: var(--jp-ui-font-color1, #1f2933);
  --nb-mute: var(--jp-ui-font-color2, #616e7c);
  --nb-main: var(--jp-brand-color1, #1565c0);
  --nb-tint: var(--jp-brand-color4, #e3f0fc);
  --nb-page: var(--jp-layout-color1, #fff);
  --nb-soft: var(--jp-layout-color2, #f5f7f9);
  --nb-good: var(--jp-success-color0, #1b5e20);
  --nb-bad: var(--jp-error-color1, #c62828);
  --nb-mono: var(--jp-code-font-family, monospace);
}
.nbext-form {
  max-width: 920px; box-sizing: border-box; margin: 2px; padding: 16px 18px 14px; overflow: visible;
  border: 1px solid var(--nb-line); border-radius: 8px; background: var(--nb-page); color: var(--nb-text);
}
.nbext-form.nbext-wide { max-width: 1240px; }
.nbext-form .widget-html, .nbext-form .widget-html-content { height: auto; line-height: 1.5; overflow: visible; }
.nbext-form .widget-html { margin: 0; }
.nbext-form .nbext-title { font-size: 15px; font-weight: 600; }
.nbext-form .nbext-note { color: var(--nb-mute); font-size: 12px; }
.nbext-form .nbext-hint { margin-bottom: 8px; }
.nbext-row.widget-hbox, .nbext-row { gap: 10px; flex-wrap: wrap; align-items: flex-end; overflow: visible; }
.nbext-form .widget-box { overflow: visible; }
.nbext-form .nbext-hidden { display: none !important; }

/* A field: its label above, then what is typed, then its help or its error. */
.nbext-field.widget-box { margin: 0; min-width: 90px; gap: 0; }
.nbext-field .widget-inline-hbox {
  flex-direction: column; align-items: stretch; width: 100%; height: auto; margin: 0; padding: 0;
}
.nbext-field .widget-inline-hbox .widget-label {
  width: auto; max-width: none; text-align: left; font-size: 12px; font-weight: 600; line-height: 20px; height: 20px;
  color: var(--nb-mute); margin: 0; padding: 0; overflow: visible;
}
.nbext-field input[type="text"], .nbext-field textarea, .nbext-field select {
  width: 100%; max-width: none; box-sizing: border-box; border-radius: 4px; min-height: 30px; margin: 0;
}
.nbext-field .widget-inline-hbox > * { flex: none; }
.nbext-field select { height: 30px; }
.nbext-field .nbext-help, .nbext-field .nbext-error { overflow-wrap: anywhere; line-height: 1.35; margin-top: 2px; }
.nbext-field .nbext-help { color: var(--nb-mute); font-size: 11px; }
.nbext-field .nbext-error { color: var(--nb-bad); font-size: 12px; }
.nbext-wrong input, .nbext-wrong select, .nbext-wrong textarea { border-color: var(--nb-bad) !important; }

.nbext-form .jupyter-button {
  border-radius: 4px; width: auto; height: 30px; line-height: 30px; padding: 0 14px; margin: 0;
}
.nbext-form .jupyter-button:focus-visible, .nbext-form input:focus-visible, .nbext-form select:focus-visible {
  outline: 2px solid var(--nb-main); outline-offset: 1px;
}
.nbext-form .nbext-quiet.jupyter-button {
  background: transparent; border: 1px solid var(--nb-line); color: var(--nb-text); box-shadow: none;
}
.nbext-form .nbext-quiet.jupyter-button:hover:enabled { border-color: var(--nb-main); color: var(--nb-main); }
.nbext-form .nbext-small.jupyter-button { height: 26px; line-height: 24px; padding: 0 9px; font-size: 12px; }

.nbext-form .nbext-status { font-size: 13px; margin-top: 6px; }
.nbext-status .nbext-info { color: var(--nb-mute); }
.nbext-status .nbext-good { color: var(--nb-good); font-weight: 600; }
.nbext-status .nbext-bad {
  color: var(--nb-bad); border-left: 3px solid var(--nb-bad); padding: 4px 10px; background: var(--nb-soft);
  overflow-wrap: anywhere;
}

/* Results: each row is a button (the name) and the row's other cells on one grid. */
.nbext-results { border: 1px solid var(--nb-line); border-radius: 6px; margin: 6px 0; }
.nbext-results.widget-vbox, .nbext-results .widget-hbox { overflow: hidden; gap: 0; }
.nbext-line { border-top: 1px solid var(--nb-line); align-items: center; }
.nbext-form .nbext-line.widget-hbox { flex-wrap: nowrap; }
.nbext-line:first-child { border-top: 0; background: var(--nb-soft); }
.nbext-line:not(:first-child):hover { background: var(--nb-soft); }
.nbext-line.nbext-picked { background: var(--nb-tint) !important; }
.nbext-line > .widget-html { width: auto; flex: 1 1 auto; min-width: 0; }
.nbext-form .nbext-name.jupyter-button {
  flex: 0 0 36%; background: transparent; box-shadow: none; color: var(--nb-main); text-align: left; font-weight: 600;
  padding: 0 12px; overflow: hidden; text-overflow: ellipsis; white-space: nowrap; border-radius: 0;
}
.nbext-form .nbext-name.jupyter-button:hover { text-decoration: underline; }
.nbext-cells {
  display: grid; grid-template-columns: minmax(0, 1.8fr) minmax(0, 1.1fr) minmax(0, 0.9fr) minmax(0, 3fr);
  gap: 16px; align-items: center; padding: 0 12px 0 0; font-size: 13px; line-height: 32px;
}
.nbext-cells > * { overflow: hidden; text-overflow: ellipsis; white-space: nowrap; unicode-bidi: isolate; }
.nbext-heads { font-size: 12px; font-weight: 600; color: var(--nb-mute); line-height: 28px; }
.nbext-number { text-align: right; font-variant-numeric: tabular-nums; }
.nbext-mark { border-radius: 9px; padding: 1px 8px; font-size: 11px; font-weight: 600; border: 1px solid; }
.nbext-mark-good { color: var(--nb-good); }
.nbext-mark-bad { color: var(--nb-bad); }

.nbext-form table.nbext-facts { font-size: 13px; margin: 0; border-collapse: collapse; }
.nbext-form .nbext-facts th, .nbext-form .nbext-facts td {
  text-align: left; vertical-align: top; padding: 1px 0; font-weight: normal; background: transparent;
}
.nbext-form .nbext-facts th { color: var(--nb-mute); padding-right: 20px; white-space: nowrap; }
.nbext-form .nbext-facts td { overflow-wrap: anywhere; unicode-bidi: isolate; white-space: normal; max-width: 680px; }
.nbext-form pre.nbext-code, .nbext-snapshot pre.nbext-code {
  display: block; font-family: var(--nb-mono); font-size: 12px; line-height: 1.5; white-space: pre-wrap;
  word-break: normal; overflow-wrap: anywhere; user-select: all; background: var(--nb-soft);
  border: 1px solid var(--nb-line); border-radius: 4px; padding: 6px 10px; margin: 4px 0; color: var(--nb-text);
}
.nbext-panel { border-top: 1px solid var(--nb-line); padding-top: 10px; margin-top: 6px; gap: 8px; }
.nbext-table { border-collapse: collapse; font-size: 12px; width: 100%; margin: 4px 0; }
.nbext-table th, .nbext-table td {
  text-align: left; padding: 4px 10px; border-bottom: 1px solid var(--nb-line); white-space: nowrap;
  max-width: 360px; overflow: hidden; text-overflow: ellipsis; unicode-bidi: isolate;
}
.nbext-table th { color: var(--nb-mute); background: var(--nb-soft); }
.nbext-table .nbext-number { text-align: right; }

/* The builder: cards in cards, a line at the left of each group. */
.nbext-card.widget-box {
  border: 1px solid var(--nb-line); border-radius: 6px; padding: 8px 12px 10px; margin: 4px 0; gap: 6px;
  background: var(--nb-page);
}
.nbext-group.widget-box { border-left: 4px solid var(--nb-main); }
.nbext-members.widget-box { gap: 2px; }
.nbext-head.widget-hbox { align-items: center; flex-wrap: nowrap; }
.nbext-group > .nbext-head.widget-hbox { align-items: flex-end; justify-content: space-between; }
.nbext-form .widget-hprogress { margin: 6px 0 0; }
.nbext-form .progress { overflow: hidden; border-radius: 4px; background: var(--nb-line); }
.nbext-head > .widget-html {
  flex: 1 1 auto; width: auto; min-width: 0; font-size: 12px; color: var(--nb-mute); overflow-wrap: anywhere;
}
.nbext-head > .jupyter-button { flex: none; }
.nbext-kind { font-size: 14px; font-weight: 600; color: var(--nb-text); margin-right: 6px; }
.nbext-form .nbext-row.widget-hbox > .nbext-field { align-self: flex-start; }
.nbext-adders.widget-hbox { gap: 6px; margin: 4px 0; }
.nbext-form .nbext-dashed.jupyter-button { border-style: dashed; }
.nbext-big { font-size: 24px; font-weight: 600; font-variant-numeric: tabular-nums; }
.nbext-count { min-height: 36px; margin: 6px 0; }
.nbext-label { font-size: 12px; font-weight: 600; color: var(--nb-mute); }
.nbext-section { margin-top: 12px; }
.nbext-picture { max-width: 100%; border-radius: 4px; margin: 4px 0; }
.nbext-scroll { overflow-x: auto; }

/* The front end marks widgets whose kernel is gone: the form says so, and takes no more clicks. */
.nbext-form .jupyter-widgets-disconnected::before { content: none; }
.nbext-form.jupyter-widgets-disconnected::before {
  content: "The kernel of this form was restarted or is gone: nothing here works any more. Run the cell again.";
  position: static; font: 600 13px/1.5 var(--jp-ui-font-family, sans-serif); color: var(--nb-bad); margin-bottom: 8px;
}
.nbext-form.jupyter-widgets-disconnected > * { opacity: 0.5; pointer-events: none; }
"""


def hiding(display_id: str) -> str:
    """Return CSS that hides a form's static snapshot; as a part of the live form it goes when the form goes."""
    return f".{display_id} {{ display: none }} .jp-OutputArea-child:has(.{display_id}) {{ display: none }}"
