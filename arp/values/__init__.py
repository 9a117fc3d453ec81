"""Values of programs as something to show: data frames, models, figures, pictures.

Read in this order: `cell`, `records`, `columns`, `series`, `pictures`, `plotly_figure`, `shown`.
"""
